// What crosses units in any plan across meshes takes at least.
//
// Steps take the latency of the outermost level that they use, and their bytes. Of a collective
// that is so for each of its groups, of which the one that ends last counts:
//
//     level 0: 14 GB/s, 13 us; level 1: 391 GB/s, 25 us; an all_gather of 24 B a rank
//     ranks 4 and 8, of two units      25 us + 62 ps
//     ranks 3 and 5, of one            13 us + 1668 ps: over before
//
// So bytes over slow links inside of units do not come on top of the latency between them, which
// only matters where links outside are the faster ones.
#pragma once

#include <array>
#include <cstdint>

#include "base/int_math.h"
#include "cost/rank_links.h"
#include "transfer/traffic.h"

namespace meshplan {

[[nodiscard]] inline int64_t ps_of_ns(int64_t ns) { return saturating_mul(ns, 1000); }

struct LeastCrossing {
  int64_t latency_ns = 0;  // of the outermost level that must be used
  // Of what leaves units of the level inside of each (of level 0: ranks), of all steps together.
  std::array<int64_t, max_levels> transfer_ps{};
  // Groups that do not reach so far may end last.
  bool near_ends_last = false;

  // Of all that one step takes in which everything waits for its latency.
  [[nodiscard]] int64_t transfer() const;
  // Of what waits for the latency of this level or of one further out in any step.
  [[nodiscard]] int64_t transfer_beyond(int level) const;
  // What any plan takes, ps.
  [[nodiscard]] int64_t ps(const RankLinks& links) const;
};

}  // namespace meshplan
