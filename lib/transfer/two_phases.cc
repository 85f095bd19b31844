#include "transfer/two_phases.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {

int64_t parts_to_deal(int64_t boxes, int64_t members) {
  int64_t parts = 1;
  while (16 * members * ceil_div(boxes * parts, members) > 17 * boxes * parts) ++parts;
  return parts;
}

TwoPhases::TwoPhases(const ExchangeRanks& ranks, const LevelUnits& units)
    : ranks_(ranks),
      units_(units),
      nearest_(ranks, units),
      turns_(ranks.shards() * static_cast<size_t>(units.levels())),
      seen_(ranks.wants(), 0) {}

bool TwoPhases::next(UnitExchange& unit) {
  if (at_ == ranks_.size()) return false;
  unit.members.clear();
  unit.wanted.clear();
  unit.fetched.clear();
  const int64_t here = units_.unit(ranks_.id[at_], 0);
  const auto mark = static_cast<int32_t>(at_ + 1);
  for (; at_ < ranks_.size() && units_.unit(ranks_.id[at_], 0) == here; ++at_) {
    unit.members.push_back(static_cast<int32_t>(at_));
    const int32_t w = ranks_.wanted[at_];
    if (w < 0 || seen_[static_cast<size_t>(w)] == mark) continue;
    seen_[static_cast<size_t>(w)] = mark;
    unit.wanted.push_back(w);
  }
  deal(unit);
  return true;
}

void TwoPhases::deal(UnitExchange& unit) {
  missing_.clear();
  for (int32_t w : unit.wanted) {
    for (const Overlap& overlap : ranks_.overlaps_of(w)) {
      if (nearest_.of(overlap.shard, unit.members.front()).level > 0) missing_.emplace_back(w, overlap);
    }
  }
  if (missing_.empty()) return;
  // Members in the order of the boxes that they want; wanted boxes are numbered in that order already
  // among the ranks of one unit only by their first member, so it is looked up.
  order_.clear();
  for (int32_t w : unit.wanted) {
    for (int32_t m : unit.members) {
      if (ranks_.wanted[static_cast<size_t>(m)] == w) order_.push_back(m);
    }
  }
  for (int32_t m : unit.members) {
    if (ranks_.wanted[static_cast<size_t>(m)] < 0) order_.push_back(m);
  }
  const auto k = static_cast<int64_t>(order_.size());
  const auto boxes = static_cast<int64_t>(missing_.size());
  const int64_t parts = parts_to_deal(boxes, k);
  const int64_t all = boxes * parts;
  int64_t member = 0;
  int64_t dealt = 0;
  // Box by wanted box, part by part, shard by shard: a member's run then holds different shards.
  for (size_t begin = 0; begin < missing_.size();) {
    size_t end = begin;
    while (end < missing_.size() && missing_[end].first == missing_[begin].first) ++end;
    for (int64_t part = 0; part < parts; ++part) {
      for (size_t i = begin; i < end; ++i, ++dealt) {
        while ((member + 1) * all / k <= dealt) ++member;
        FetchedPart f;
        f.wanted = missing_[i].first;
        f.overlap = missing_[i].second;
        f.part = part;
        f.parts = parts;
        f.fetcher = order_[static_cast<size_t>(member)];
        if (near_equal(f.overlap.longest, parts, part) == 0) continue;
        const NearestHolders& near = nearest_.of(f.overlap.shard, f.fetcher);
        f.level = near.level;
        Turn& turn = turns_[static_cast<size_t>(near.level) * ranks_.shards() + static_cast<size_t>(f.overlap.shard)];
        if (turn.begin != near.begin) turn = {near.begin, 0};
        f.holder = ranks_.holders_of(f.overlap.shard)[static_cast<size_t>(near.begin + turn.asked++ % near.count)];
        unit.fetched.push_back(f);
      }
    }
    begin = end;
  }
}

}  // namespace meshplan
