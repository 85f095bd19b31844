// The greedy planner: PyTorch's default rule for default shard orders.
//
//     P(sum)S(0) -> S(0)S(0)    P(sum)R, S(0)R, S(0)S(0)     the inner shard is
//         gathered first, since a shard outside it is about to appear
//
// Pass 1, innermost mesh dim first, only if the source is sharded over more than one rank: a mesh
// dim goes straight to its target, or to R where the mesh dims outside it that shard the target's
// tensor dim now are not those that will. Pass 2, outermost first: what is left goes to its target.
// Progress: after pass 1 every mesh dim holds its target or R.
#pragma once

#include <span>
#include <vector>

#include "torch_rules/transition.h"

namespace meshplan {

// One placement per mesh dim; no strided shards.
[[nodiscard]] std::vector<Transition> greedy_transitions(std::span<const Placement> src,
                                                         std::span<const Placement> dst,
                                                         std::span<const int64_t> mesh_shape,
                                                         std::span<const int64_t> tensor_shape);

}  // namespace meshplan
