// Which options hold, of those that a spec and its caller (a command line, a program) give.
//
//     spec                caller              holds
//     -                   -                   optimal, native
//     planner graph       -                   graph, dtensor
//     rules dtensor       -                   greedy, dtensor
//     rules native        planner greedy      greedy, dtensor    a planner beats the spec's rules
//     planner graph       rules dtensor       graph, dtensor     the spec's planner follows them
//     planner optimal     rules dtensor       greedy, dtensor
//     planner graph, rules native             error: one source contradicts itself
#pragma once

#include "base/result.h"
#include "tensor/request.h"

namespace meshplan {

// The rules that a planner follows.
[[nodiscard]] constexpr Rules rules_of(PlannerKind planner) {
  return planner == PlannerKind::optimal ? Rules::native : Rules::dtensor;
}

// What the caller gives beats the spec; what neither gives has its default.
[[nodiscard]] Result<PlanOptions> settle_options(const GivenOptions& spec,
                                                 const GivenOptions& caller);

}  // namespace meshplan
