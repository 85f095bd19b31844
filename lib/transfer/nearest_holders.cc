#include "transfer/nearest_holders.h"

#include <algorithm>

namespace meshplan {

Nearest::Nearest(const ExchangeRanks& ranks, const LevelUnits& units)
    : ranks_(&ranks), units_(units), known_(ranks.shards()) {
  unit_.resize(ranks.size());
  for (size_t begin = 0; begin < ranks.size();) {
    const size_t end = units.end_of_unit(ranks.id, begin);
    std::fill(unit_.begin() + static_cast<std::ptrdiff_t>(begin),
              unit_.begin() + static_cast<std::ptrdiff_t>(end),
              static_cast<int32_t>(begin_.size()));
    begin_.push_back(static_cast<int32_t>(begin));
    begin = end;
  }
  begin_.push_back(static_cast<int32_t>(ranks.size()));
}

void Nearest::take_up(int32_t unit) {
  unit_at_hand_ = unit;
  ++turn_;
  const auto at = static_cast<size_t>(unit);
  for (auto r = static_cast<size_t>(begin_[at]); r < static_cast<size_t>(begin_[at + 1]); ++r) {
    if (ranks_->shard[r] < 0) continue;
    Known& known = known_[static_cast<size_t>(ranks_->shard[r])];
    if (known.turn != turn_) known = {{0, ranks_->place[r], 0}, turn_};
    ++known.near.count;
  }
}

// The unit of level 0 has no holder: looks in those of the next levels, by bisection.
void Nearest::find_outside(Known& known, int32_t shard, int32_t rank) const {
  const auto holders = ranks_->holders_of(shard);
  known = {{units_.levels() - 1, 0, static_cast<int32_t>(holders.size())}, turn_};
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
}

}  // namespace meshplan
