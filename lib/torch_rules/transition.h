// Transitions: one mesh dim's change of placement, which is what PyTorch's planners emit and its
// merge pass joins.
//
//     mesh dim 1: S(0) -> R       all_gather          mesh dim 0: P(sum) -> S(1)    reduce_scatter
//     mesh dim 0: R -> S(1)       slice               mesh dim 0: R -> P(sum)       to_partial
//
// What it is not: a step. A step holds the state that it leaves behind; `append_step` makes one
// from transitions and the state before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "mesh/mesh.h"
#include "tensor/state.h"

namespace meshplan {

struct Transition {
  int32_t mesh_dim = 0;
  Placement src;
  Placement dst;
  // what the rank at coordinate 0 has before mesh dim `mesh_dim` shards it
  std::vector<int64_t> logical_shape;
  bool operator==(const Transition&) const = default;
};

// PyTorch plans, and cannot execute, a change from one pending reduction to another or from a shard
// to a pending reduction other than sum; on a mesh dim of size 1 nothing is executed and both are
// allowed. Nor are reductions that may not mix pending together on the way, on mesh dims of any
// size. The error (no_plan) names both placements. `src`: by mesh dim.
[[nodiscard]] Status check_executable(std::span<const Placement> src,
                                      std::span<const Transition> transitions, const Mesh& mesh);

// Where a shard that a step makes stands in its tensor dim's order.
enum class ShardPosition : uint8_t {
  last,      // behind all others, as the graph planner counts
  by_index,  // by mesh dim, the default order, the only one that the greedy planner knows
};

// Changes `state` as the transition says.
void apply_transition(State& state, const Transition& transition,
                      std::span<const int64_t> mesh_shape, ShardPosition position);

}  // namespace meshplan
