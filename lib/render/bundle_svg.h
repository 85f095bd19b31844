// A bundle's rounds as a picture: a row for each stream, time from left to right.
//
//     stream 0  [ 0 ][ 2 ][ 4 ]          buckets come over the outer links,
//     stream 1       [ 1 ][ 3 ][ 5 ]     and are shared inside hosts behind one another
#pragma once

#include <string>

#include "render/frame_svg.h"
#include "render/plan_view.h"

namespace meshplan {

[[nodiscard]] FrameSize bundle_picture_size(const PlannedBundle& bundle);
// Elements from (0, 0) on. Pointing at a round says what it runs and takes.
[[nodiscard]] std::string bundle_svg(const Plan& plan, const PlannedBundle& bundle,
                                     const ShowOptions& options);

}  // namespace meshplan
