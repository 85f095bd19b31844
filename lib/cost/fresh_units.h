// Plans across meshes, by what enters fresh units: those in which no rank of the source lies, where
// there is one level ranks.
//
//     8 ranks of a host S(0) -> 64 of 8 others, R      T: what the 8 NICs of a host take for it all
//     lands   each box of the state in which it lands, once at least        T
//     passed on, over 64 NICs   8 hosts want it all, 8 T, of which T has landed there    7/8 T
//
// One exchange crosses in every plan, and nothing enters such units before it. What it brings them
// comes from ranks of the source; what is missing then comes over their own links, in other steps.
// So bytes take
//
//     landed / (links of the source) + (wanted - landed) / (links of the units)
//
// where those are more. In the state in which it lands, on the target's mesh and with nothing
// pending, boxes are of one size and have equally many holders. So m of N ranks hold m / N of the
// tensor together at least. Where extents do not divide, a dim n that is cut f times has no shard
// below n / f - N: of n / N^2 parts of the tensor one less.
//
// Or nothing enters the units in other steps: the exchange brings each of them all that it wants,
// and in one phase each rank what it wants.
#pragma once

#include <span>

#include "cost/rank_boxes.h"
#include "cost/rank_links.h"

namespace meshplan {

// What plans that communicate in two steps or phases take at least, in picoseconds. 0: nothing is
// known. `transfer_ps`: of the bytes of any plan at least. Only where the levels price every step,
// and where some rank of the target lies outside of the source's mesh.
[[nodiscard]] int64_t least_in_two_ps(const Topology& topology, const Participants& all,
                                      const RankLinks& links, std::span<const int64_t> shape,
                                      int64_t element_bytes, int64_t transfer_ps);

// What the bytes of one exchange in one phase, which is all the plan, take at least. 0: nothing is
// known.
[[nodiscard]] int64_t least_of_one_exchange_ps(const Topology& topology, const Participants& all,
                                               const RankLinks& links, int64_t element_bytes);

}  // namespace meshplan
