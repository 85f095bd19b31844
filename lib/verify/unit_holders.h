// What the ranks of one unit of the innermost level hold, so that the nearest holders of a shard to
// them are found in one step: for most shards they are either inside of it, or every holder.
//
//     units of 4, a shard held by ranks 2 3 5 9, in places 0 to 3
//     in the unit of ranks 0 to 3     places 0 and 1, level 0
//     in the unit of ranks 12 to 15   all four, over the outermost level
#pragma once

#include <cstdint>
#include <vector>

#include "verify/listing.h"

namespace meshplan::verification {

class UnitHolders {
 public:
  explicit UnitHolders(const Listing& listing) : listing_(listing), held_(listing.shards()) {}

  // Takes up the unit of a rank, by its number in the listing.
  void enter(size_t rank) {
    const std::vector<ListedRank>& ranks = listing_.ranks();
    const int64_t unit = unit_of(ranks[rank]);
    if (unit == unit_) return;
    unit_ = unit;
    units_ = listing_.units_of(ranks[rank].id);
    ++turn_;
    size_t first = rank;
    while (first > 0 && unit_of(ranks[first - 1]) == unit) --first;
    for (size_t i = first; i < ranks.size() && unit_of(ranks[i]) == unit; ++i) {
      if (ranks[i].src == nowhere) continue;
      Held& held = held_[ranks[i].shard];
      if (held.turn != turn_) held = {turn_, ranks[i].place, 0};
      ++held.count;
    }
  }
  // To the ranks of that unit.
  [[nodiscard]] NearestHolders nearest(size_t shard) const {
    const Held& held = held_[shard];
    if (held.turn == turn_) return {0, held.first, held.count};
    for (size_t l = 1; l + 1 < listing_.units().levels(); ++l) {
      if (const NearestHolders near = listing_.inside(shard, units_, l); near.count > 0)
        return near;
    }
    return listing_.inside(shard, units_, listing_.units().levels() - 1);
  }

 private:
  [[nodiscard]] int64_t unit_of(const ListedRank& rank) const {
    return rank.id / listing_.units().ranks(0);
  }
  struct Held {
    uint64_t turn = 0;  // that of the unit by which a holder was last met
    size_t first = 0;   // place
    int64_t count = 0;
  };
  const Listing& listing_;
  std::vector<Held> held_;  // by shard
  int64_t unit_ = -1;
  Listing::UnitsOf units_;
  uint64_t turn_ = 0;
};

}  // namespace meshplan::verification
