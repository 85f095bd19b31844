// The holders of a shard that are nearest to a rank: those in the rank's unit of the innermost
// level whose unit has one.
//
//     units of 4 and 8, a shard held by ranks 2 3 5 9
//     to rank 1     ranks 2 3, level 0: they are in its unit of 4
//     to rank 6     rank 5, level 0
//     to rank 12    rank 9, level 1: its unit of 4 has none, its unit of 8 has one
#pragma once

#include <cstdint>
#include <vector>

#include "transfer/exchange_ranks.h"
#include "transfer/level_units.h"

namespace meshplan {

struct NearestHolders {
  int level = 0;      // of the links to them
  int32_t begin = 0;  // among the shard's holders: they are ascending ids of one unit, so in a row
  int32_t count = 0;
};

// Finds nearest holders. Ranks ask unit by unit: what those of one hold is marked when it is taken
// up, and most shards that it does not hold have one answer.
class Nearest {
 public:
  Nearest(const ExchangeRanks& ranks, const LevelUnits& units);
  // Of a shard to the rank at this index. The answer is one for all ranks of a unit of level 0.
  // Valid until a rank of another unit asks.
  [[nodiscard]] const NearestHolders& of(int32_t shard, int32_t rank) {
    const int32_t unit = unit_[static_cast<size_t>(rank)];
    if (unit != unit_at_hand_) take_up(unit);
    Known& known = known_[static_cast<size_t>(shard)];
    if (known.turn != turn_) find_outside(known, shard, rank);
    return known.near;
  }

 private:
  struct Known {
    NearestHolders near;
    int32_t turn = 0;  // in which the unit at hand was taken up
  };
  void take_up(int32_t unit);
  void find_outside(Known& known, int32_t shard, int32_t rank) const;

  const ExchangeRanks* ranks_;
  LevelUnits units_;
  std::vector<int32_t> unit_;   // of level 0, by rank, numbered in rank order
  std::vector<int32_t> begin_;  // of each unit, and the end
  std::vector<Known> known_;    // by shard
  int32_t unit_at_hand_ = -1;
  int32_t turn_ = 0;
};

}  // namespace meshplan
