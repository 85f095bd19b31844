// Explains each step of a redistribution: its reason, the states before and after it, and the
// arithmetic of its cost.
#pragma once

#include <string>

#include "plan/plan.h"

namespace meshplan {

// With `grids`, the part of the tensor that each rank holds before and after each step.
[[nodiscard]] std::string explain_redistribution(const Plan& plan,
                                                 const PlannedRedistribution& redistribution,
                                                 bool grids);
// The same for one that repeats an earlier one: the id of that one.
[[nodiscard]] std::string explain_repeat(const Plan& plan,
                                         const PlannedRedistribution& redistribution,
                                         const std::string& first);

}  // namespace meshplan
