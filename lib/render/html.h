// Pages that need nothing else: no server, no network, no library.
#pragma once

#include <string>

#include "diff/diff.h"
#include "render/plan_view.h"

namespace meshplan {

// Choose a redistribution (the table sorts and searches), slide through its steps, point at a rank
// to see from whom it receives what.
[[nodiscard]] std::string render_html(const Plan& plan, const ShowOptions& options);

// What changed: totals, the table, and of each redistribution its steps, folded.
[[nodiscard]] std::string render_diff_html(const PlanDiff& diff, const ShowOptions& options);

}  // namespace meshplan
