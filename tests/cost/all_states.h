// Every state of a tensor on a small mesh: each mesh dim replicated, pending or sharding one tensor
// dim, in every order.
#pragma once

#include <algorithm>
#include <vector>

#include "tensor/state.h"

namespace meshplan {

// `ops`: the reduce ops that may be pending (none: replicate and shard only). Size-1 mesh dims take
// part like any other.
inline std::vector<State> all_states(std::span<const int64_t> mesh_shape, size_t tensor_rank, const std::vector<ReduceOp>& ops = {}) {
  std::vector<State> done;
  State empty;
  empty.shards.resize(tensor_rank);
  std::vector<State> open{empty};
  // Insert mesh dims one by one at every place of every order.
  for (size_t m = 0; m < mesh_shape.size(); ++m) {
    std::vector<State> next;
    for (const State& s : open) {
      SubAxis sub_axis{static_cast<int32_t>(m), 1, mesh_shape[m]};
      next.push_back(s);
      for (ReduceOp op : ops) {
        if (std::any_of(s.partial.begin(), s.partial.end(), [&](const PendingSubAxis& p) { return !may_mix(p.op, op); })) continue;
        next.push_back(s);
        next.back().partial.push_back({sub_axis, op});
      }
      for (size_t d = 0; d < tensor_rank; ++d) {
        for (size_t at = 0; at <= s.shards[d].size(); ++at) {
          next.push_back(s);
          next.back().shards[d].insert(next.back().shards[d].begin() + static_cast<std::ptrdiff_t>(at), sub_axis);
        }
      }
    }
    open = std::move(next);
  }
  return open;
}

}  // namespace meshplan
