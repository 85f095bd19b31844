// One frame of a picture as SVG elements.
#pragma once

#include <string>
#include <vector>

#include "render/grid.h"
#include "render/senders.h"

namespace meshplan {

struct FrameSize {
  int64_t width = 0;
  int64_t height = 0;
};
[[nodiscard]] FrameSize frame_size(const Grid& grid);

// The tensor dims that a picture shows, rows and columns: those that a state of the redistribution
// shards, the first two; -1: none.
struct ShownDims {
  int rows = -1;
  int columns = -1;
};
[[nodiscard]] ShownDims shown_dims(const PlannedRedistribution& redistribution);

// Elements from (0, 0) on. Equal shards have equal colours; pending reductions are hatched (pattern
// "pending").
[[nodiscard]] std::string frame_svg(const Grid& grid, const std::vector<int64_t>& shape,
                                    const ShownDims& shown);

// A frame and where in the picture its (0, 0) lies.
struct PlacedFrame {
  const Grid* grid = nullptr;
  int64_t x = 0;
  int64_t y = 0;
};

// Over the cells of `to`, which are drawn before: for every rank a place to point at, whose title
// says what it holds and from whom it received it, and arrows from those of its senders that `from`
// shows. `from` is `to` itself where a step stays on its mesh. Arrows are hidden but for the rank
// pointed at, and for the first that receives. `senders`: null for a source.
[[nodiscard]] std::string ranks_svg(const PlacedFrame& from, const PlacedFrame& to,
                                    const StepSenders* senders);

// <defs> and the style that frames refer to.
[[nodiscard]] std::string frame_definitions();

}  // namespace meshplan
