// The graph planner: PyTorch's search for the cheapest way over states of whole mesh dims, one mesh
// dim a step.
//
//     S(0)[0]S(0)[1] -> S(0)[1]S(0)[0]      gathers and slices until the order is turned round
//
// Dijkstra over (placement of each mesh dim, its place in the shard order). Successors of a state
// are pushed in this order: all_to_all of each tensor dim's last mesh dim (source tensor dim, then
// target tensor dim), all_gather of it, all_reduce per mesh dim, slice (mesh dim, then tensor dim),
// reduce_scatter (likewise), R -> P for the ops that source or target have (never mixing kinds that
// may not mix), S -> P(sum) where the target has P(sum) on that mesh dim. Equal costs leave the
// queue in the order in which they entered it, and the search ends when the target leaves it:
// PyTorch's ties are ours.
//
// A state is a small integer, a few bits for each mesh dim, so that a step changes one field. What
// cannot be on the chosen path is never queued: a way that is not cheaper than one known to the
// same state or, with a bound on what is left, to the target.
#pragma once

#include <vector>

#include "plan/question.h"
#include "torch_rules/transition.h"

namespace meshplan {

// Errors (no_plan): more mesh dims and tensor dims than a state has bits for, or more states to
// look at than a second has room for.
[[nodiscard]] Result<std::vector<Transition>> graph_transitions(const PlanQuestion& question);

// Ranks of a host as the dtensor cost model counts them: --ranks-per-host, else the first level of
// a given topology, else 1.
[[nodiscard]] int64_t ranks_per_host(const PlanQuestion& question);

}  // namespace meshplan
