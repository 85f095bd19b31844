// Flags that would change nothing beside the others given: bad usage, told with what to write
// instead, since whoever writes one expects it to act.
//
//     run PLAN --repeat 5        counts measured repetitions: it needs --measure or --against
//     plan SPEC --top 3          the plan file has every redistribution, whatever --top says
//     diff A B --topology h100   where A and B are plans, nothing is planned
//
// Not refused: a value that is the default, such as --costs on, and what a planner accepts and
// ignores, such as --cost-model with greedy.
#pragma once

#include "base/result.h"
#include "cli/arguments.h"

namespace meshplan {

// All that the command line alone tells.
[[nodiscard]] Status refuse_idle_flags(const Arguments& arguments);

// The flags that plan specs, where `diff` was given plans.
[[nodiscard]] Status refuse_planning_flags(const PlanningFlags& flags);

}  // namespace meshplan
