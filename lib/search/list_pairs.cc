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

ListPairs::Place ListPairs::of(const PlanProblem& p, const RankSides::Lists& from,
                               const RankSides::Lists& to, int d) {
  Place& known =
      places_[as_index(d)].at(to.along[as_index(d)]->list, from.along[as_index(d)]->list);
  if (known == 0) {
    known = values_.size() + 1;
    add(p, from, to, d);
  }
  return known - 1;
}

void ListPairs::add(const PlanProblem& p, const RankSides::Lists& from, const RankSides::Lists& to,
                    int d) {
  ranks_ = p.listed_ranks();
  p.share_work(static_cast<int64_t>(ranks_ + p.units.size()) * work::list_pair);
  const size_t flags = values_.size();
  const RankSides::Sides& before = *from.along[as_index(d)];
  const RankSides::Sides& after = *to.along[as_index(d)];
  values_.resize(flags + 1 + 2 * ranks_ + 3 * p.units.size());
  int64_t* const wants = &values_[flags + 1];
  int64_t* const keeps = wants + ranks_;
  bool alike = true;
  for (size_t r = 0; r < ranks_; ++r) {
    wants[r] = width(after.side[r]);
    keeps[r] = overlap_width(before.side[r], after.side[r]);
    alike = alike && wants[r] == wants[0] && keeps[r] == keeps[0];
  }
  values_[flags] = (before.even && after.even ? is_even : 0) | (alike ? is_alike : 0);
  int64_t* of_unit = keeps + ranks_;
  for (const UnitRanks& unit : p.units) {
    const std::span<const Interval> held = before.joined_of(unit.part());
    const std::span<const Interval> wanted = after.joined_of(unit.part());
    *of_unit++ = width_of(held);
    *of_unit++ = width_of(wanted);
    *of_unit++ = overlap_of(held, wanted);
  }
}

void ListPairs::limit_memory() {
  if (values_.size() <= most_values) return;
  values_.clear();
  for (ListTable<Place>& places : places_) places.clear();
}

PairPlaces pairs_of_lists(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  p.sides.limit_memory();
  p.pairs.limit_memory();
  PairPlaces at{};
  if (is_scalar(p)) return at;
  const RankSides::Lists& before = p.sides.lists(p, from);
  const RankSides::Lists& after = p.sides.lists(p, to);
  for (int d = 0; d < p.dims; ++d) at[as_index(d)] = p.pairs.of(p, before, after, d);
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
