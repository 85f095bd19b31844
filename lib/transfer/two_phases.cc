#include "transfer/two_phases.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {

int64_t parts_to_share(int64_t boxes, int64_t members) {
  int64_t parts = 1;
  while (16 * members * ceil_div(boxes * parts, members) > 17 * boxes * parts) ++parts;
  return parts;
}

TwoPhases::TwoPhases(const ExchangeRanks& ranks, const LevelUnits& units)
    : ranks_(ranks),
      units_(units),
      nearest_(ranks, units),
      turns_(ranks.shards()),
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
  for (int32_t w : unit.wanted) share_out(unit, w);
  return true;
}

int64_t TwoPhases::take_turn(int32_t shard, const NearestHolders& near, int64_t parts) {
  auto& turns = turns_[static_cast<size_t>(shard)];
  auto known = std::find_if(turns.begin(), turns.end(), [&](const Turn& turn) {
    return turn.level == near.level && turn.begin == near.begin && turn.parts == parts;
  });
  if (known == turns.end()) known = turns.insert(turns.end(), {near.level, near.begin, parts, 0});
  return floor_mod(known->asked++, near.count);
}

void TwoPhases::share_out(UnitExchange& unit, int32_t wanted) {
  missing_.clear();
  for (const Overlap& overlap : ranks_.overlaps_of(wanted)) {
    if (nearest_.of(overlap.shard, unit.members.front()).level > 0) missing_.push_back(overlap);
  }
  if (missing_.empty()) return;
  sharing_.clear();
  for (int32_t m : unit.members) {
    if (ranks_.wanted[static_cast<size_t>(m)] == wanted) sharing_.push_back(m);
  }
  const auto k = static_cast<int64_t>(sharing_.size());
  const auto boxes = static_cast<int64_t>(missing_.size());
  const int64_t parts = parts_to_share(boxes, k);
  // Part by part, shard by shard: a member's run holds different shards.
  int64_t member = 0;
  int64_t at = 0;
  for (int64_t part = 0; part < parts; ++part) {
    for (const Overlap& overlap : missing_) {
      // Member m fetches the m-th of k runs of all parts.
      while ((member + 1) * boxes * parts < (at + 1) * k) ++member;
      ++at;
      const int64_t longest = near_equal(overlap.longest, parts, part);
      if (longest == 0) continue;
      FetchedPart& f = unit.fetched.emplace_back();
      f.wanted = wanted;
      f.overlap = overlap;
      f.part = part;
      f.parts = parts;
      f.elements = floor_div(overlap.elements, overlap.longest) * longest;
      f.fetcher = sharing_[static_cast<size_t>(member)];
      const NearestHolders& near = nearest_.of(overlap.shard, f.fetcher);
      f.level = near.level;
      const int64_t turn = near.begin + take_turn(overlap.shard, near, parts);
      f.holder = ranks_.holders_of(overlap.shard)[static_cast<size_t>(turn)];
    }
  }
}

}  // namespace meshplan
