// The preset of training frameworks such as torchtitan: degrees of parallelism over one world, and
// the meshes derived from them.
//
//     world    (world)                                   the root, one dim
//     data     (pp, batch, cp, tp)                       batch = dp_replicate * dp_shard
//     dense    (pp, dp_replicate, dp_shard, cp, tp)
//     sparse   (pp, dp_replicate, edp, ep, etp)          edp = dp_shard * cp * tp / (ep * etp)
//     batch, fsdp, loss                                  flattens of dense
//
// batch flattens (dp_replicate, dp_shard), fsdp (dp_shard, cp), loss (dp_replicate, dp_shard, cp).
// data, dense and sparse unflatten world, so dims with the same layout share communicators.
#pragma once

#include "mesh/mesh_table.h"

namespace meshplan {

struct ParallelDims {
  int64_t world = 1;
  int64_t pp = 1;
  int64_t dp_replicate = 1;
  int64_t dp_shard = -1;  // -1: the world divided by the other degrees
  int64_t cp = 1;
  int64_t tp = 1;
  int64_t ep = 1;
  int64_t etp = 1;  // equal to tp, or 1
  bool operator==(const ParallelDims&) const = default;
};

// The degrees with dp_shard computed. Law: pp * dp_replicate * dp_shard * cp * tp == world, and ep
// * etp divides dp_shard * cp * tp. Errors show the arithmetic.
[[nodiscard]] Result<ParallelDims> resolve(const ParallelDims& dims);

// Adds the seven meshes to an empty table.
[[nodiscard]] Status add_parallel_dims(MeshTable& table, const ParallelDims& dims,
                                       std::string group_options = {});

}  // namespace meshplan
