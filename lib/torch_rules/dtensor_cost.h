// PyTorch's one-step cost models: what the graph planner searches with. They choose a path and
// never reach a plan, whose figures are the topology's.
//
//     unit      all_reduce 4, all_gather 2, reduce_scatter 2, all_to_all 1, local 0
//               (PyTorch of 2025)
//     dtensor   us = 6.6 + hops * latency + GiB moved / bandwidth * 1e6; all_to_all 1 us more;
//               local 0 (PyTorch 2.15)
//
// dtensor, for g ranks: g-1 hops and (g-1)/g of the gathered or scattered tensor, all_reduce twice
// both. Bytes count no padding: the global tensor over the mesh sizes that shard it. Inside a host
// 87.7 GiB/s and 0.6 us; a mesh dim is between hosts (22 % and 2.7 us) when the product of the mesh
// sizes from it inwards exceeds the ranks of a host. A mesh dim of size 1 costs 6.6 us, as in
// PyTorch.
//
// The arithmetic keeps PyTorch's order of operations, so that its ties are ours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/op_table.h"
#include "tensor/request.h"
#include "torch_rules/transition.h"

namespace meshplan {

class DtensorCost {
 public:
  DtensorCost(CostModel model, std::span<const int64_t> mesh_shape, const TensorMeta& tensor,
              int64_t ranks_per_host);

  // One transition of mesh dim `mesh_dim`; `shards` = product of the mesh sizes that shard the
  // tensor before it.
  [[nodiscard]] double step(Op op, size_t mesh_dim, int64_t shards) const;
  // All transitions one after the other, from the source placements (microseconds under `dtensor`).
  [[nodiscard]] double path(std::span<const Placement> src,
                            std::span<const Transition> transitions) const;

 private:
  struct Link {
    int64_t ranks = 1;
    double bandwidth = 0;  // GiB/s
    double latency = 0;    // us
  };
  [[nodiscard]] static double collective(const Link& link, double gib, int64_t hops);

  CostModel model_;
  std::vector<Link> links_;  // per mesh dim
  double bytes_ = 0;
};

}  // namespace meshplan
