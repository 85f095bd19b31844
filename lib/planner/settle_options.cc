#include "planner/settle_options.h"

namespace meshplan {
namespace {

PlannerKind settled_planner(const GivenOptions& spec, const GivenOptions& caller) {
  if (caller.planner) return *caller.planner;
  std::optional<Rules> rules = caller.rules;
  if (!rules && !spec.planner) rules = spec.rules;
  if (spec.planner && (!rules || rules_of(*spec.planner) == *rules)) return *spec.planner;
  return rules == Rules::dtensor ? PlannerKind::greedy : PlannerKind::optimal;
}

template <class T>
void settle(T& option, const std::optional<T>& spec, const std::optional<T>& caller) {
  if (spec) option = *spec;
  if (caller) option = *caller;
}

}  // namespace

Result<PlanOptions> settle_options(const GivenOptions& spec, const GivenOptions& caller) {
  PlanOptions options;
  options.planner = settled_planner(spec, caller);
  options.rules = rules_of(options.planner);
  // A planner of the caller overrides the rules of the spec; planner and rules from the same source
  // must agree.
  const bool caller_agrees = !caller.rules || *caller.rules == options.rules;
  const bool spec_agrees =
      caller.planner || caller.rules || !spec.rules || *spec.rules == options.rules;
  if (!caller_agrees || !spec_agrees) {
    return bad_input(std::string("planner ") + to_text(options.planner) + " does not support the " +
                     to_text(caller_agrees ? *spec.rules : *caller.rules) +
                     " rules; omit one of the two");
  }
  settle(options.groups, spec.groups, caller.groups);
  settle(options.max_memory_bytes, spec.max_memory_bytes, caller.max_memory_bytes);
  settle(options.one_reduction, spec.one_reduction, caller.one_reduction);
  settle(options.world_group, spec.world_group, caller.world_group);
  settle(options.merge, spec.merge, caller.merge);
  settle(options.audit, spec.audit, caller.audit);
  settle(options.alternatives, spec.alternatives, caller.alternatives);
  settle(options.max_groups, spec.max_groups, caller.max_groups);
  settle(options.cost_model, spec.cost_model, caller.cost_model);
  options.ranks_per_host = caller.ranks_per_host ? caller.ranks_per_host : spec.ranks_per_host;
  const bool given = spec.cost_model || caller.cost_model;
  if (given && options.planner == PlannerKind::optimal &&
      options.cost_model != CostModel::topology) {
    return bad_input(
        std::string("the optimal planner uses the costs of the topology, not --cost-model ") +
        to_text(options.cost_model) + "; omit it, or use --planner graph");
  }
  return options;
}

}  // namespace meshplan
