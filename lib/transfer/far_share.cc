#include "transfer/far_share.h"

namespace meshplan {

const FarShares::FarHolders& FarShares::far_of(int32_t shard, int32_t rank,
                                               const NearestHolders& near) {
  FarHolders& far = far_[static_cast<size_t>(shard)];
  const int64_t id = ranks_.id[static_cast<size_t>(rank)];
  const int64_t unit = units_.unit(id, 0);
  if (far.unit == unit) return far;
  far = {unit, 0, 0, 0};
  if (near.level > 0) return far;
  // The holders of the innermost unit that has more of them stand in a row, around the nearest.
  const auto holders = ranks_.holders_of(shard);
  for (int l = 1; l < units_.levels(); ++l) {
    const int64_t outer = units_.unit(id, l);
    const auto unit_of = [&](int32_t holder) {
      return units_.unit(ranks_.id[static_cast<size_t>(holder)], l);
    };
    const auto nearest = holders.begin() + near.begin;
    const auto first = std::partition_point(holders.begin(), nearest,
                                            [&](int32_t h) { return unit_of(h) < outer; });
    const auto last = std::partition_point(nearest, holders.end(),
                                           [&](int32_t h) { return unit_of(h) == outer; });
    far.level = l;
    far.begin = static_cast<int32_t>(first - holders.begin());
    far.count = static_cast<int32_t>(last - first) - near.count;
    if (far.count > 0) break;
  }
  return far;
}

bool has_far_holders(const ExchangeRanks& ranks, const LevelUnits& units) {
  for (size_t s = 0; s < ranks.shards(); ++s) {
    const auto holders = ranks.holders_of(static_cast<int32_t>(s));
    const auto unit_of = [&](int32_t holder) {
      return units.unit(ranks.id[static_cast<size_t>(holder)], 0);
    };
    if (unit_of(holders.front()) != unit_of(holders.back())) return true;
  }
  return false;
}

}  // namespace meshplan
