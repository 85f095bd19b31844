#include "transfer/two_phases.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/int_math.h"

namespace meshplan {

int64_t parts_to_share(int64_t boxes, int64_t members) {
  int64_t parts = 1;
  while (16 * members * ceil_div(boxes * parts, members) > 17 * boxes * parts) ++parts;
  return parts;
}

TwoPhases::TwoPhases(const ExchangeRanks& ranks, const LevelUnits& units, Fetchers fetchers)
    : ranks_(ranks),
      units_(units),
      nearest_(ranks, units),
      fetchers_(fetchers),
      first_turn_(ranks.shards()),
      number_(ranks.wants(), -1) {}

bool TwoPhases::next(UnitExchange& unit) {
  if (at_ == ranks_.size()) return false;
  unit.members.clear();
  unit.wanted.clear();
  unit.sharing_begin.assign(1, 0);
  unit.fetched.clear();
  const int64_t here = units_.unit(ranks_.id[at_], 0);
  for (; at_ < ranks_.size() && units_.unit(ranks_.id[at_], 0) == here; ++at_) {
    unit.members.push_back(static_cast<int32_t>(at_));
    const int32_t w = ranks_.wanted[at_];
    if (w < 0) continue;
    int32_t& number = number_[static_cast<size_t>(w)];
    if (number < 0) {
      number = static_cast<int32_t>(unit.wanted.size());
      unit.wanted.push_back(w);
      unit.sharing_begin.push_back(0);
    }
    ++unit.sharing_begin[static_cast<size_t>(number) + 1];
  }
  list_sharing(unit);
  missing_.clear();
  for (size_t k = 0; k < unit.wanted.size(); ++k) {
    add_missing(unit, k);
    if (all_fetch(fetchers_)) continue;
    share_out(unit, unit.members_of(k));
    missing_.clear();
  }
  if (all_fetch(fetchers_)) {
    all_.clear();
    for (const int32_t m : unit.members) {
      if (ranks_.target[static_cast<size_t>(m)] >= 0) all_.push_back(m);
    }
    share_among_all(unit);
  }
  return true;
}

// `sharing_begin` has how many members want each box.
void TwoPhases::list_sharing(UnitExchange& unit) {
  std::partial_sum(unit.sharing_begin.begin(), unit.sharing_begin.end(),
                   unit.sharing_begin.begin());
  unit.sharing.resize(static_cast<size_t>(unit.sharing_begin.back()));
  next_.assign(unit.sharing_begin.begin(), unit.sharing_begin.end() - 1);
  for (const int32_t m : unit.members) {
    const int32_t w = ranks_.wanted[static_cast<size_t>(m)];
    if (w < 0) continue;
    int32_t& next = next_[static_cast<size_t>(number_[static_cast<size_t>(w)])];
    unit.sharing[static_cast<size_t>(next++)] = m;
  }
  for (const int32_t w : unit.wanted) number_[static_cast<size_t>(w)] = -1;
}

int32_t TwoPhases::take_turn(int32_t shard, const NearestHolders& near, int64_t parts) {
  const auto is_same = [&](const Turn& turn) {
    return turn.level == near.level && turn.begin == near.begin && turn.parts == parts;
  };
  const auto taken = [&](int32_t& next) {
    const int32_t turn = next++;
    if (next == near.count) next = 0;
    return near.begin + turn;
  };
  Turn& first = first_turn_[static_cast<size_t>(shard)];
  if (first.parts == 0) first = {near.level, near.begin, parts, 0};
  if (is_same(first)) return taken(first.next);
  auto& turns = turns_[shard];
  auto known = std::find_if(turns.begin(), turns.end(), is_same);
  if (known == turns.end()) known = turns.insert(turns.end(), {near.level, near.begin, parts, 0});
  return taken(known->next);
}

void TwoPhases::add_missing(const UnitExchange& unit, size_t number) {
  for (const Overlap& overlap : ranks_.overlaps_of(unit.wanted[number])) {
    if (nearest_.of(overlap.shard, unit.members.front()).level > 0)
      missing_.push_back({number, overlap, floor_div(overlap.elements, overlap.longest)});
  }
}

void TwoPhases::share_out(UnitExchange& unit, std::span<const int32_t> sharing) {
  if (missing_.empty()) return;
  const auto k = static_cast<int64_t>(sharing.size());
  const auto boxes = static_cast<int64_t>(missing_.size());
  const int64_t parts = parts_to_share(boxes, k) * laps_of(fetchers_);
  // Part by part, shard by shard: a member's run holds different shards.
  int64_t member = 0;
  int64_t at = 0;
  for (int64_t part = 0; part < parts; ++part) {
    for (const auto& [number, overlap, slice] : missing_) {
      // Member m fetches the m-th of k runs of all parts.
      while ((member + 1) * boxes * parts < (at + 1) * k) ++member;
      ++at;
      const int64_t slices =
          parts == 1 ? overlap.longest : near_equal(overlap.longest, parts, part);
      if (slices == 0) continue;
      FetchedPart& f = unit.fetched.emplace_back();
      f.wanted = unit.wanted[number];
      f.number = number;
      f.overlap = overlap;
      f.first = part == 0 ? 0 : near_equal_begin(overlap.longest, parts, part);
      f.slices = slices;
      f.elements = slice * slices;
      f.fetcher = sharing[static_cast<size_t>(member)];
      const NearestHolders& near = nearest_.of(overlap.shard, f.fetcher);
      f.level = near.level;
      const int32_t place = take_turn(overlap.shard, near, parts);
      f.holder = ranks_.holders_of(overlap.shard)[static_cast<size_t>(place)];
    }
  }
}

void TwoPhases::share_among_all(UnitExchange& unit) {
  int128 all = 0;
  for (const Missing& one : missing_) all += one.overlap.elements;
  const auto members = static_cast<int64_t>(all_.size());
  const int64_t stretches = members * laps_of(fetchers_);
  // So few elements are not cut off from an overlap.
  const auto is_sliver = [&](int128 elements) { return 256 * elements * stretches < all; };
  int128 before = 0;  // elements of overlaps before
  int64_t stretch = 0;
  for (const auto& [number, overlap, slice] : missing_) {
    // As near to all members of the unit.
    const NearestHolders near = nearest_.of(overlap.shard, all_.front());
    const std::span<const int32_t> holders = ranks_.holders_of(overlap.shard);
    LeastAsked& asked = asked_of(overlap.shard, near);
    for (int64_t at = 0; at < overlap.longest;) {
      // Up to (i + 1) / stretches of all elements, in whole slices.
      const int128 end = std::max(int128{0}, all * (stretch + 1) / stretches - before) / slice;
      auto last = static_cast<int64_t>(std::min(end, int128{overlap.longest}));
      if (last < overlap.longest && is_sliver(int128{last} * slice)) {
        last = 0;
      } else if (is_sliver(int128{overlap.longest - last} * slice)) {
        last = overlap.longest;
      }
      if (last > at) {
        FetchedPart& f = unit.fetched.emplace_back();
        f.wanted = unit.wanted[number];
        f.number = number;
        f.overlap = overlap;
        f.first = at;
        f.slices = last - at;
        f.elements = slice * f.slices;
        f.fetcher = all_[static_cast<size_t>(floor_mod(stretch, members))];
        f.level = near.level;
        f.holder = holders[static_cast<size_t>(asked.next(near, f.elements))];
        at = last;
      }
      if (at < overlap.longest) ++stretch;
    }
    before += overlap.elements;
  }
}

TwoPhases::LeastAsked& TwoPhases::asked_of(int32_t shard, const NearestHolders& near) {
  if (first_asked_.empty()) first_asked_.resize(ranks_.shards());
  AskedFirst& first = first_asked_[static_cast<size_t>(shard)];
  if (first.level < 0) {
    first.level = near.level;
    first.begin = near.begin;
  }
  if (first.level == near.level && first.begin == near.begin) return first.asked;
  return asked_[{shard, near.level, near.begin}];
}

int32_t TwoPhases::LeastAsked::next(const NearestHolders& near, int64_t elements) {
  const auto all = static_cast<size_t>(near.count);
  if (asked_.size() < all) {
    const int32_t place = near.begin + static_cast<int32_t>(asked_.size());
    asked_.emplace_back(elements, place);
    if (asked_.size() == all) std::make_heap(asked_.begin(), asked_.end(), std::greater<>());
    return place;
  }
  std::pop_heap(asked_.begin(), asked_.end(), std::greater<>());
  auto& [asked_for, place] = asked_.back();
  asked_for = saturating_add(asked_for, elements);
  const int32_t least = place;
  std::push_heap(asked_.begin(), asked_.end(), std::greater<>());
  return least;
}

}  // namespace meshplan
