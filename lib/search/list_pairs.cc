#include "search/list_pairs.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

constexpr size_t most_values = size_t{1} << 21;  // remembered

int64_t width_of(std::span<const Interval> parts) {
  int64_t all = 0;
  for (const Interval& part : parts) all += width(part);
  return all;
}

// What both have; each ascends.
int64_t overlap_of(std::span<const Interval> a, std::span<const Interval> b) {
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
  ranks_ = p.listed_ranks();
  p.work += static_cast<int64_t>(ranks_ + p.units.size()) * work::rank_side;
  const size_t flags = values_.size();
  values_.push_back(cuts_evenly(p, from, d) && cuts_evenly(p, to, d) ? is_even : 0);
  const RankSides::Sides& before = p.sides.of(p, from, d);
  const RankSides::Sides& after = p.sides.of(p, to, d);
  for (size_t r = 0; r < ranks_; ++r) values_.push_back(width(after.side[r]));
  for (size_t r = 0; r < ranks_; ++r)
    values_.push_back(overlap_width(before.side[r], after.side[r]));
  const auto all_equal = [](const int64_t* of_ranks, size_t ranks) {
    return std::all_of(of_ranks, of_ranks + ranks, [&](int64_t n) { return n == *of_ranks; });
  };
  const int64_t* const wants = values_.data() + flags + 1;
  if (all_equal(wants, ranks_) && all_equal(wants + ranks_, ranks_)) values_[flags] |= is_alike;
  for (const UnitRanks& unit : p.units) {
    const std::span<const Interval> held = before.joined_of(unit.part());
    const std::span<const Interval> wanted = after.joined_of(unit.part());
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
  p.sides.limit_memory();
  p.pairs.limit_memory();
  PairPlaces at{};
  for (int d = 0; d < p.dims && !is_scalar(p); ++d) at[as_index(d)] = p.pairs.of(p, from, to, d);
  return at;
}

int64_t most_missing(const PlanProblem& p, const PairPlaces& at, int64_t contributions) {
  const size_t ranks = p.listed_ranks();
  if (p.total_elements == 0 || ranks == 0) return 0;
  if (is_scalar(p)) return saturating_mul(contributions - 1, p.idle_elements);
  // Dims along which all ranks are alike count once.
  int64_t wanted_by_all = p.idle_elements;
  int64_t kept_by_all = p.idle_elements;
  std::array<const int64_t*, max_search_dims> wanted;
  std::array<const int64_t*, max_search_dims> kept;
  size_t apart = 0;
  for (int d = 0; d < p.dims; ++d) {
    const ListPairs::Place pair = at[as_index(d)];
    wanted[apart] = p.pairs.wanted(pair);
    kept[apart] = p.pairs.kept(pair);
    if (!p.pairs.alike(pair)) {
      ++apart;
      continue;
    }
    wanted_by_all *= *wanted[apart];
    kept_by_all *= *kept[apart];
  }
  int64_t most = 0;
  for (size_t r = 0; r < (apart == 0 ? 1 : ranks); ++r) {
    int64_t all = wanted_by_all;
    int64_t had = kept_by_all;
    for (size_t d = 0; d < apart; ++d) {
      all *= wanted[d][r];
      had *= kept[d][r];
    }
    most = std::max(most, saturating_mul(contributions, all) - had);
  }
  return most;
}

}  // namespace meshplan
