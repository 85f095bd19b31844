// A plan as tables for people: on a terminal and in Markdown.
#pragma once

#include <string>

#include "render/plan_view.h"

namespace meshplan {

//   meshes and options
//   one row per step, headings per redistribution; or one row per redistribution (summary)
//   the summary line
[[nodiscard]] std::string render_plan_text(const Plan& plan, const ShowOptions& options);
// The same for GitHub: the table of redistributions, the steps folded below it.
[[nodiscard]] std::string render_plan_markdown(const Plan& plan, const ShowOptions& options);

}  // namespace meshplan
