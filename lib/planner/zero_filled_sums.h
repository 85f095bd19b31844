// Sums of zero-filled shards in place of gathering them.
//
//     4,096 ranks (h100), [4096] bfloat16, S(0) -> R
//     gathered: two exchanges, which hear from more ranks the more there are     990 us
//     each shard in a tensor of zeros, P(sum), and one all_reduce                112 us
//
// No search looks for that: what is summed does not keep its bits, -0.0 becomes 0.0. Whoever can do
// with that writes the zeros and asks from P(sum).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mesh/mesh.h"
#include "plan/plan.h"

namespace meshplan {

// The sources of sums: of every tensor dim the last mesh dims of its list no longer shard it, as
// many as may be but for those with which the target's list begins, too; each rank has its shard in
// zeros. Every choice of them, those of the most mesh dims first, of boxes of so many elements at
// most. None where what is summed is rounded, or stands pending with what no sum mixes with.
[[nodiscard]] std::vector<State> zero_filled(const Request& request,
                                             std::span<const int64_t> mesh_sizes,
                                             int64_t most_elements);

// The local steps that lead from the request's source to one of them.
[[nodiscard]] std::vector<Step> filling_steps(const Request& request, const Mesh& mesh,
                                              const State& contributions);

// A0411, where the plan by way of `filled` surely takes less. Both are priced.
[[nodiscard]] std::optional<AuditFinding> zeros_save(const MeshTable& meshes,
                                                     const Topology& topology,
                                                     const PlannedRedistribution& planned,
                                                     const State& filled,
                                                     const PlannedRedistribution& by_sums);

}  // namespace meshplan
