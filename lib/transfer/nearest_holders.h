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

// Finds nearest holders; remembers the last answer for each shard, as ranks ask in ascending order.
class Nearest {
 public:
  Nearest(const ExchangeRanks& ranks, const LevelUnits& units);
  // Of a shard to the rank at this index. The answer is one for all ranks of a unit of level 0.
  [[nodiscard]] const NearestHolders& of(int32_t shard, int32_t rank) {
    Known& known = known_[static_cast<size_t>(shard)];
    const int32_t unit = unit_[static_cast<size_t>(rank)];
    if (known.unit != unit) find(known, shard, rank, unit);
    return known.near;
  }

 private:
  struct Known {
    NearestHolders near;
    int32_t unit = -1;
    int32_t next = 0;  // among the shard's holders: the first that is not in a unit before
  };
  void find(Known& known, int32_t shard, int32_t rank, int32_t unit);
  void find_outside(Known& known, int32_t shard, int32_t rank) const;

  const ExchangeRanks* ranks_;
  LevelUnits units_;
  std::vector<int32_t> unit_;  // of level 0, by rank, numbered in rank order
  std::vector<Known> known_;
};

}  // namespace meshplan
