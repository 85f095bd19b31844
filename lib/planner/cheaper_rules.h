// The rules' plans in place of a searched one that is not proven: so no plan is dearer than what
// PyTorch would do under the same groups and limits.
//
//     a million ranks, P(sum) over three dims     the search ends at 8.8 ms, its work used up
//     graph's rules                               2.0 ms: reduce_scatter, all_reduce, two gathers
#pragma once

#include <vector>

#include "plan/question.h"
#include "transfer/level_map.h"

namespace meshplan {

// Whether the target has contributions that the source does not. The search makes them last. Rules
// may make them sooner and reduce them again, which takes less where one rank holds nearly all: a
// reduce_scatter sends every rank a share, where the holder would send all of it.
[[nodiscard]] bool makes_sums(const Request& request);

struct RulesAsked {
  PlannerKind planner = PlannerKind::greedy;
  CostModel cost_model = CostModel::dtensor;
};
// Those of PyTorch's rules that plan such a question in a short time; none: all take seconds.
[[nodiscard]] std::vector<RulesAsked> rules_in_time(const Request& request, const Mesh& mesh);

// `list`: of plan_optimal, on one mesh. Keeps its bounds and what the search left out. Taken are
// rules that keep to the options: memory, one reduction. Where the request makes sums and rules are
// cheaper, allowed or not, or take too long to be asked, the search's bound does not hold of them:
// nothing is proven (Shortcut::made_sums).
void take_cheaper_rules(const PlanQuestion& question, const LevelMap& levels, StepList& list);

}  // namespace meshplan
