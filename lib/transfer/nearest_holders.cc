#include "transfer/nearest_holders.h"

#include <algorithm>

namespace meshplan {

Nearest::Nearest(const ExchangeRanks& ranks, const LevelUnits& units)
    : ranks_(&ranks), units_(units), known_(ranks.shards()) {
  unit_.reserve(ranks.size());
  int64_t last = -1;
  for (const int64_t id : ranks.id) {
    const int64_t unit = units.unit(id, 0);
    unit_.push_back(unit_.empty() ? 0 : unit_.back() + (unit != last ? 1 : 0));
    last = unit;
  }
}

void Nearest::find(Known& known, int32_t shard, int32_t rank, int32_t unit) {
  const auto holders = ranks_->holders_of(shard);
  const auto count = static_cast<int32_t>(holders.size());
  auto unit_of = [&](int32_t at) {
    return unit_[static_cast<size_t>(holders[static_cast<size_t>(at)])];
  };
  if (unit < known.unit) known.next = 0;
  known.unit = unit;
  while (known.next < count && unit_of(known.next) < unit) ++known.next;
  int32_t end = known.next;
  while (end < count && unit_of(end) == unit) ++end;
  if (end > known.next) {
    known.near = {0, known.next, end - known.next};
  } else {
    find_outside(known, shard, rank);
  }
}

// The unit of level 0 has no holder: looks in those of the next levels, by bisection.
void Nearest::find_outside(Known& known, int32_t shard, int32_t rank) const {
  const auto holders = ranks_->holders_of(shard);
  const int64_t id = ranks_->id[static_cast<size_t>(rank)];
  for (int l = 1; l + 1 < units_.levels(); ++l) {
    const int64_t wanted = units_.unit(id, l);
    auto unit_at = [&](int32_t holder) {
      return units_.unit(ranks_->id[static_cast<size_t>(holder)], l);
    };
    const auto first = std::partition_point(holders.begin(), holders.end(),
                                            [&](int32_t h) { return unit_at(h) < wanted; });
    const auto last =
        std::partition_point(first, holders.end(), [&](int32_t h) { return unit_at(h) == wanted; });
    if (first == last) continue;
    known.near = {l, static_cast<int32_t>(first - holders.begin()),
                  static_cast<int32_t>(last - first)};
    return;
  }
  known.near = {units_.levels() - 1, 0, static_cast<int32_t>(holders.size())};
}

}  // namespace meshplan
