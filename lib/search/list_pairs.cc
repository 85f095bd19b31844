#include "search/list_pairs.h"

#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

constexpr size_t most_values = size_t{1} << 21;  // remembered

int64_t width_of(const std::vector<Interval>& parts) {
  int64_t all = 0;
  for (const Interval& part : parts) all += width(part);
  return all;
}

// What both have; each ascends.
int64_t overlap_of(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  int64_t all = 0;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    all += overlap_width(a[i], b[k]);
    (a[i].hi < b[k].hi ? i : k) += 1;
  }
  return all;
}

}  // namespace

ListPairs::Slot& ListPairs::slot(uint64_t from, uint64_t to) {
  const size_t mask = slots_.size() - 1;
  for (size_t i = (from * 0x9e3779b97f4a7c15U ^ to * 0xbf58476d1ce4e5b9U) >> 32 & mask;;
       i = (i + 1) & mask) {
    if (slots_[i].place == 0 || (slots_[i].from == from && slots_[i].to == to)) return slots_[i];
  }
}

void ListPairs::grow() {
  const std::vector<Slot> before = std::move(slots_);
  slots_.assign(std::max<size_t>(256, before.size() * 2), {});
  for (const Slot& known : before) {
    if (known.place != 0) slot(known.from, known.to) = known;
  }
}

ListPairs::Place ListPairs::of(const PlanProblem& p, const SearchState& from, const SearchState& to,
                               int d) {
  if (slots_.size() < 2 * (taken_ + 1)) grow();
  const uint64_t from_key = list_key(from, d);
  const uint64_t to_key = list_key(to, d);
  Slot& known = slot(from_key, to_key);
  if (known.place == 0) {
    known = {from_key, to_key, values_.size() + 1};
    ++taken_;
    add(p, from, to, d);
  }
  return known.place - 1;
}

void ListPairs::add(const PlanProblem& p, const SearchState& from, const SearchState& to, int d) {
  ranks_ = p.listed_ranks.ranks();
  p.work += static_cast<int64_t>(ranks_ + p.units.size()) * work::rank_side;
  values_.push_back(cuts_evenly(p, from, d) && cuts_evenly(p, to, d) ? 1 : 0);
  const std::vector<Interval>& before = p.listed_ranks.of(p, from, d).side;
  const std::vector<Interval>& after = p.listed_ranks.of(p, to, d).side;
  for (const Interval& side : after) values_.push_back(width(side));
  for (size_t r = 0; r < ranks_; ++r) values_.push_back(overlap_width(before[r], after[r]));
  for (const UnitRanks& unit : p.units) {
    const std::vector<Interval>& held = unit.sides.of(p, from, d).joined;
    const std::vector<Interval>& wanted = unit.sides.of(p, to, d).joined;
    values_.insert(values_.end(), {width_of(held), width_of(wanted), overlap_of(held, wanted)});
  }
}

void ListPairs::limit_memory() {
  if (values_.size() <= most_values) return;
  values_.clear();
  slots_.clear();
  taken_ = 0;
}

PairPlaces pairs_of_lists(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  p.listed_ranks.limit_memory();
  for (const UnitRanks& unit : p.units) unit.sides.limit_memory();
  p.pairs.limit_memory();
  PairPlaces at{};
  for (int d = 0; d < p.dims && !is_scalar(p); ++d) at[as_index(d)] = p.pairs.of(p, from, to, d);
  return at;
}

}  // namespace meshplan
