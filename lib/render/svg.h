// Pictures: every rank's part of the tensor on the mesh grid, before and after each step.
#pragma once

#include <string>

#include "render/plan_view.h"

namespace meshplan {

// One SVG: a strip of frames for each redistribution, below one another. Pointing at a rank says
// what it holds and from whom it received it.
[[nodiscard]] std::string render_svg(const Plan& plan, const ShowOptions& options);

}  // namespace meshplan
