// Bounds rank by rank: two meshes, permuted ranks, uneven shards and units that cut mesh dims
// unevenly.
//
// What a set of ranks must take in or give away (cost/set_needs.h) goes over the links between its
// members and the ranks outside of it (cost/rank_links.h), all of them at once at best:
//
//     a rank; a unit of a level; ranks of one cell, with one box, of one mesh
//     across meshes too: the ranks of an innermost unit but the holders of one box, or of any box
//     that others of the unit want
//
// Steps only add up, and each takes at least its bytes over a level by that level's bandwidth, so
// the sum over all steps is at least need / (sum of the bandwidths of those links). With c > 1 sets
// needed to have every contribution to an element and t sets that want it whole, (c - 1) + (t - 1)
// values of it enter sets, one more where no set does both: until some set has all of them c - 1
// entered, and of the t that want the value only that one has it. Those are shared by all ranks.
#pragma once

#include "cost/bounds.h"

namespace meshplan {

// Ranks that are listed for one request, all copies and all target orders together. Beyond that the
// target's largest box less the source's says what rank 0 misses, which is the same in every order.
constexpr int64_t bounded_ranks = 65'536;

// On one mesh (both are the same object) over all its copies, where units may cut them in different
// ways; else of the first copies, which take part. `element_bytes` is the least width on the way.
// `most_ps`: no more is told than that it takes longer. Law: else the same
// (tests/planner/bounds_across_test.cc).
[[nodiscard]] Bounds listed_bounds(const Topology& topology, const Mesh& src_mesh,
                                   const Mesh& dst_mesh, std::span<const int64_t> shape,
                                   int64_t element_bytes, const State& src, const State& dst,
                                   int64_t most_ranks = bounded_ranks, int64_t most_ps = INT64_MAX);

}  // namespace meshplan
