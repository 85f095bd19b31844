// What no schedule of a bundle can beat: what sets of ranks must take in and give away for all
// members together (cost/set_needs.h), over the links that they have.
//
//     2 tensors of 8 B, each from ranks 0 1 to all of ranks 2 .. 5     rank 2 takes in 16 B,
//                                                                      ranks 0 and 1 give away 16 B
//
//     set                                   links
//     a rank                                every set: of the levels on which its ranks meet ranks
//     the ranks of a unit of a level        of the bundle outside of the set, of each of its ranks
//     all sources of one mesh, all targets
//
// Every byte enters or leaves the set at least once; what is inside may be passed on for nothing.
// Where the target may have any order, of each set what it needs in the best of them.
// Exchanges alone cross, at the rate that they reach, but for collectives of meshes that have ranks
// inside the set and outside: their bytes go at the full rate, over links of both.
//
//     set of 40 ranks, 8 more of their mesh outside     40 links at the rate of exchanges, of which
//                                                       8 at the full one
//
// So of what the units of a set that only exchanges enter take in together as much crosses at their
// rate as the set takes in, once, and the rest at most at the full one.
// A gather brings a byte to all units of its group but one. Where few want it, it is worth less
// than an exchange, and what the busiest units take in together comes at the rate of exchanges.
// Rounds that overlap share a level's bandwidth, so sums over members are sums over rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace meshplan {

struct BundleBounds {
  int64_t bytes = 0;  // that some rank takes in, of all members together
  int64_t ps = 0;     // 0 where measured tables may say anything
};

// Beyond `bounded_ranks` ranks (cost/listed_bounds.h) no picoseconds, and the bytes of one member.
// Members with equal questions are listed once.
[[nodiscard]] BundleBounds bundle_bounds(const Plan& plan, const BundleRequest& bundle);

}  // namespace meshplan
