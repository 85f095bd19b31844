// The rule planners as the pipeline asks them: greedy or graph, then the merge pass.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "plan/question.h"
#include "torch_rules/transition.h"

namespace meshplan {

// A rule planner's answer before merging.
struct RuleAnswer {
  // graph where a shard order is not the default, whoever was asked
  PlannerKind planner = PlannerKind::greedy;
  std::vector<Transition> transitions;
  ShardPosition position = ShardPosition::by_index;
};

// The target that PyTorch plans for: in the backward direction a pending reduction that the source
// does not have yet is left out, R instead.
[[nodiscard]] State effective_target(const Request& request, std::span<const int64_t> mesh_shape);

// Errors (no_plan): two different meshes, steps that nothing can execute, a search that found no
// way.
[[nodiscard]] Result<RuleAnswer> rule_transitions(const PlanQuestion& question);

// The answer as steps under the question's rules and options. `also_declared` (ascending mesh dims,
// may be empty) counts as declared flattened: what-if questions for warnings.
[[nodiscard]] StepList merged_steps(const PlanQuestion& question, const RuleAnswer& answer,
                                    std::span<const int32_t> also_declared = {});

}  // namespace meshplan
