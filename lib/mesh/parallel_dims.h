// The preset that training frameworks use: degrees of parallelism over one world, and the meshes that follow from them.
//
//     world    (world)                                   the root, one dim
//     data     (pp, batch, cp, tp)                       batch = dp_replicate * dp_shard
//     dense    (pp, dp_replicate, dp_shard, cp, tp)
//     sparse   (pp, dp_replicate, edp, ep, etp)          edp = dp_shard * cp * tp / (ep * etp); the expert view of the same ranks
//     batch, fsdp, loss                                  flattens of dense: (dp_replicate, dp_shard), (dp_shard, cp), (dp_replicate,
//     dp_shard, cp)
//
// data, dense and sparse are unflattens of world, so that every dim with the same layout shares its communicators.
#pragma once

#include "mesh/mesh_table.h"

namespace meshplan {

struct ParallelDims {
  int64_t world = 1;
  int64_t pp = 1;
  int64_t dp_replicate = 1;
  int64_t dp_shard = -1;  // -1: what the others leave of the world
  int64_t cp = 1;
  int64_t tp = 1;
  int64_t ep = 1;
  int64_t etp = 1;  // equal to tp, or 1
  bool operator==(const ParallelDims&) const = default;
};

// The degrees with dp_shard filled in. Law: pp * dp_replicate * dp_shard * cp * tp == world, and ep * etp divides dp_shard * cp * tp.
// Errors show the arithmetic.
[[nodiscard]] Result<ParallelDims> resolve(const ParallelDims& dims);

// Adds the seven meshes to an empty table.
[[nodiscard]] Status add_parallel_dims(MeshTable& table, const ParallelDims& dims, std::string group_options = {});

}  // namespace meshplan
