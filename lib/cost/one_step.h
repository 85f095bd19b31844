// Plans that communicate in one step, which passes nothing on.
//
//     8 ranks S(0) -> 64 ranks R      one exchange: every rank fetches it all itself, from 8 peers
//                                     two steps: two latencies; units share what they fetched
//
// So a plan takes at least the lesser of what one exchange takes and what two steps take. In the
// exchange every rank receives each missing part of its target from a rank that holds it at the
// start; slices before it only leave fewer ranks that hold a part. all_to_all does not pass on
// either. all_gather does: after one on the source's mesh a rank holds, in each tensor dim, the
// shard of a prefix of the source's order, so it received at least the smallest such box around its
// target.
#pragma once

#include <optional>

#include "cost/least_crossing.h"
#include "cost/rank_boxes.h"
#include "cost/rank_links.h"

namespace meshplan {

// What a plan across meshes takes at least, in picoseconds, given what crosses units. nullopt:
// nothing more than that is known. Only where the levels price every step.
[[nodiscard]] std::optional<int64_t> steps_across_ps(
    const Topology& topology, const Participants& all, const RankLinks& links, const State& src,
    std::span<const int64_t> shape, int64_t element_bytes, const LeastCrossing& least);

}  // namespace meshplan
