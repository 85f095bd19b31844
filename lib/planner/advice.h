// Warnings that sell themselves: which flattened mesh would make a plan cheaper, found by planning
// again as if it were declared. advice.cc writes the text; api/warnings.cc merges the warnings of a
// file and replaces what follows "; saves ". For PyTorch's rules torch_rules/rule_planner.cc warns.
#pragma once

#include <vector>

#include "plan/question.h"
#include "search/work.h"
#include "transfer/level_map.h"

namespace meshplan {

// One warning for every set of mesh dims that is not declared, that the best plan with it declared
// runs a collective on, and that makes that plan cheaper than `planned` (priced). Each names the
// collective, the steps that it replaces and what it saves; never one that saves nothing. Sets that
// the budget does not suffice for are not looked at.
[[nodiscard]] std::vector<Warning> missing_flattens(const PlanQuestion& question,
                                                    const LevelMap& levels,
                                                    const PlannedRedistribution& planned,
                                                    work::Budget& budget);

}  // namespace meshplan
