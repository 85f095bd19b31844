// Whether a plan's last communicating step can start here: quick refusals, before any move is listed.
#pragma once

#include "planner/packed.h"

namespace meshplan {

// What a plan from `at` takes at least whose only communicating step is a collective, with local steps before and after it, ps. INT64_MAX
// where there is none within the problem's state limit; `least`, the bound on any plan from there, where reductions are open or the world
// does not pack.
[[nodiscard]] int64_t last_collective_floor_ps(const PlanProblem& p, const PackedWorld& world, const Spread& at, int64_t least);

}  // namespace meshplan
