// Flags that change nothing beside the others given: said on stderr, since whoever writes one
// expects it to act. They are not refused, as a script may give the same flags to several formats;
// what would leave an empty file is.
//
//     run PLAN --repeat 5        counts measured repetitions: it needs --measure or --against
//     plan SPEC --top 3          the plan file has every redistribution, whatever --top says
//     diff A B --topology h100   where A and B are plans, nothing is planned
//
// Nothing is said of a value that is the default, such as --costs on, nor of what a planner
// ignores, such as --cost-model with greedy.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/arguments.h"

namespace meshplan {

// Of what the command line alone tells, the first.
[[nodiscard]] std::optional<std::string> idle_flag(const Arguments& arguments);

// Of the flags that plan specs, where `diff` was given plans.
[[nodiscard]] std::optional<std::string> idle_planning_flag(const PlanningFlags& flags);

// Files that --against has nothing for.
[[nodiscard]] Status refuse_empty_files(const Arguments& arguments);

}  // namespace meshplan
