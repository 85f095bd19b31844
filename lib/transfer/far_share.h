// The far share of an exchange: what ranks ask of holders outside of their unit, though some are
// inside (README.md, "One phase").
//
//     hosts of 2, a shard held by ranks 1 3 5     to rank 0: rank 1 is nearest, 3 and 5 are far
//                                                 to rank 2: rank 3 is nearest, 1 and 5 are far
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/int_math.h"
#include "transfer/exchange_cut.h"
#include "transfer/nearest_holders.h"

namespace meshplan {

// A far share is so many 64ths of an overlap.
constexpr int64_t far_whole = 64;
// Of so many slices, rounded down.
[[nodiscard]] constexpr int64_t far_slices(int64_t slices, int64_t far_64ths) {
  const int64_t whole = floor_div(slices, far_whole);
  return whole * far_64ths + floor_div((slices - whole * far_whole) * far_64ths, far_whole);
}
// How many far holders are asked for a share: one reaches half of what links between units carry in
// every preset with such limits, two all of it; more would only cost more peers.
constexpr int64_t far_asked = 2;

// Some slices of an overlap, along its longest dim, and who sends them.
struct Share {
  int32_t holder = 0;  // rank index
  int level = 0;       // of the link
  int64_t first = 0;   // slice
  int64_t slices = 1;
};

// Ranks ask in ascending order, each once for every shard of which it misses part.
class FarShares {
 public:
  // `far_64ths`: 0 (nothing) to 64 (all that far holders have).
  FarShares(const ExchangeRanks& ranks, const LevelUnits& units, int64_t far_64ths)
      : ranks_(ranks),
        units_(units),
        far_64ths_(far_64ths),
        nearest_(ranks, units),
        far_(ranks.shards()),
        turn_(ranks.shards(), 0) {}

  // Calls visit(share) for all that the rank gets of an overlap that it misses: from the nearest
  // holders, then from far ones. Empty ones are left out.
  template <class Visitor>
  void for_each_share(int32_t rank, const Overlap& overlap, Visitor&& visit) {
    const auto holders = ranks_.holders_of(overlap.shard);
    const NearestHolders& near = nearest_.of(overlap.shard, rank);
    const FarHolders& away = far_of(overlap.shard, rank, near);
    const int64_t turn = turn_[static_cast<size_t>(overlap.shard)]++;
    const int64_t far = away.count > 0 ? far_slices(overlap.longest, far_64ths_) : 0;
    const int64_t at_hand = overlap.longest - far;
    for (int64_t i = 0; i < std::min<int64_t>(near.count, at_hand); ++i) {
      visit(Share{holders[static_cast<size_t>(near.begin + i)], near.level,
                  near_equal_begin(at_hand, near.count, i), near_equal(at_hand, near.count, i)});
    }
    const int64_t asked = std::min<int64_t>(far_asked, away.count);
    for (int64_t i = 0; i < std::min(asked, far); ++i) {
      const int32_t place = away.place(near, far_asked * turn + i);
      visit(Share{holders[static_cast<size_t>(place)], away.level,
                  at_hand + near_equal_begin(far, asked, i), near_equal(far, asked, i)});
    }
  }

 private:
  // The holders of a shard in an outer unit but the nearest, which stand in a row among them.
  struct FarHolders {
    int64_t unit = -1;  // of level 0: whose ranks they are for
    int level = 0;
    int32_t begin = 0;  // of the outer unit, among the shard's holders
    int32_t count = 0;  // of the far ones; 0: there are none
    // Among the shard's holders that of this number among the far ones, round and round.
    [[nodiscard]] int32_t place(const NearestHolders& near, int64_t number) const {
      const int32_t at = begin + static_cast<int32_t>(floor_mod(number, count));
      return at < near.begin ? at : at + near.count;
    }
  };
  const FarHolders& far_of(int32_t shard, int32_t rank, const NearestHolders& near);

  const ExchangeRanks& ranks_;
  LevelUnits units_;
  int64_t far_64ths_;
  Nearest nearest_;
  std::vector<FarHolders> far_;  // by shard, for the unit that asked last
  std::vector<int64_t> turn_;    // by shard: how many ranks so far missed part of it
};

// Whether some shard has holders in several units of the innermost level.
[[nodiscard]] bool has_far_holders(const ExchangeRanks& ranks, const LevelUnits& units);

}  // namespace meshplan
