// Pictures: every rank's part of the tensor on the mesh grid, before and after each step.
#pragma once

#include <string>

#include "render/plan_view.h"

namespace meshplan {

// One SVG: a strip of frames for each redistribution, below one another.
[[nodiscard]] std::string render_svg(const Plan& plan, const ShowOptions& options);
// One page that needs nothing else: choose a redistribution, slide through its steps.
[[nodiscard]] std::string render_html(const Plan& plan, const ShowOptions& options);

}  // namespace meshplan
