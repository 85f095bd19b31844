// The audit of one planned redistribution: what PyTorch would do wrong or badly (torch_rules/
// audit.h), beside the best plan there is, what parts of mesh dims would save (split_dims.h), what
// the memory limit costs (limit_costs.h) and what sums of zero-filled shards would save
// (zero_filled_sums.h).
#pragma once

#include <optional>
#include <vector>

#include "plan/question.h"
#include "search/work.h"
#include "torch_rules/rule_planner.h"
#include "transfer/level_map.h"

namespace meshplan {

struct AuditQuestion {
  // The options as they were asked for; `searched` as the search takes them, with the table whose
  // flattens it takes (max_groups chooses some).
  PlanQuestion asked;
  PlanQuestion searched;
  const LevelMap* levels = nullptr;                  // of the source mesh
  const std::optional<RuleAnswer>* rules = nullptr;  // where PyTorch's rules planned
  const PlannedRedistribution* planned = nullptr;
};

// `budget`: the work that it may take, counted down.
[[nodiscard]] std::vector<AuditFinding> audit_plan(const AuditQuestion& question,
                                                   work::Budget& budget);

}  // namespace meshplan
