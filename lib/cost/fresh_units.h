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
// tensor together at least. A dim n that is cut f times, maybe unevenly, has no shard below
// n / f - N: of n / N^2 parts of the tensor one less. Nor one above n / f and the largest mesh dim:
// all but what the N - m others can hold alone.
//
// Or nothing enters the units in other steps: the exchange brings each of them all that it wants,
// and in one phase each rank what it wants.
#pragma once

#include <span>
#include <vector>

#include "cost/least_crossing.h"
#include "cost/rank_boxes.h"
#include "cost/rank_links.h"

namespace meshplan {

// How states of a mesh may cut an extent, whatever parts of the mesh dims do, in whatever order.
//
//     8 over x of 8             1 each; by the 4 of x:(2)4 before the 2 of x:(1)2: 2 2 2 2, and 4
//                               shards with nothing, as x:(1)2 takes 4 of 8 chunks of one element
//
// Law: of all orders of all parts (tests/cost/fresh_units_test.cc).
[[nodiscard]] bool always_cut_evenly(int64_t extent, std::span<const int64_t> mesh_sizes);
// Whether no shard is empty.
[[nodiscard]] bool always_filled(int64_t extent, std::span<const int64_t> mesh_sizes);
// Elements that so many of the mesh's ranks hold together at least, in any state of it with nothing
// pending.
[[nodiscard]] int64_t least_held(std::span<const int64_t> shape, int64_t ranks,
                                 std::span<const int64_t> mesh_sizes);
// That no shard is wider of so many.
[[nodiscard]] int64_t widest_shard(int64_t extent, int64_t parts,
                                   std::span<const int64_t> mesh_sizes);

// Those inside of what links of one level join, together.
struct FreshUnits {
  int level = 0;
  int64_t ranks = 0;      // of the target
  int64_t wanted = 0;     // elements, of each unit by itself
  int64_t received = 0;   // elements, of each rank by itself
  int64_t bandwidth = 0;  // MB/s of all links that leave the units
  int64_t entering = 0;   // of an exchange, in hundredths of MB/s: theirs, or the source's
};

// Of each level that has some. Of an exchange in two phases ranks of an innermost unit get parts
// from one another, too: so units are ranks only where there is one level. Only where levels price
// every step.
[[nodiscard]] std::vector<FreshUnits> fresh_units(const Topology& topology, const Participants& all,
                                                  const RankLinks& links);

// What plans that communicate in two steps or phases take at least, in picoseconds; 0: nothing is
// known. `least`: of any plan. The target has nothing pending.
[[nodiscard]] int64_t least_in_two_ps(const std::vector<FreshUnits>& units, const Participants& all,
                                      const RankLinks& links, std::span<const int64_t> shape,
                                      int64_t element_bytes, const LeastCrossing& least);

// What the bytes of one exchange in one phase, which is all the plan, take at least, likewise.
[[nodiscard]] int64_t least_of_one_exchange_ps(const std::vector<FreshUnits>& units,
                                               int64_t element_bytes);

}  // namespace meshplan
