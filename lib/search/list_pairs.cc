#include "search/list_pairs.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

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

void ListPairs::drop_known() {
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

namespace {

// What listed ranks want and keep along the dims where they differ, the same of the other dims
// together, and the most that one of them misses. `Dims`: how many they differ along, 0: `dims`.
struct Missing {
  size_t ranks = 0;
  int64_t contributions = 1;
  int64_t wanted_by_all = 1;
  int64_t kept_by_all = 1;
  std::array<const int64_t*, max_search_dims> wanted{};
  std::array<const int64_t*, max_search_dims> kept{};
  size_t dims = 0;

  template <size_t Dims>
  [[nodiscard]] int64_t most() const {
    int64_t most = 0;
    for (size_t r = 0; r < ranks; ++r) {
      int64_t all = wanted_by_all;
      int64_t had = kept_by_all;
      for (size_t d = 0; d < (Dims == 0 ? dims : Dims); ++d) {
        all *= wanted[d][r];
        had *= kept[d][r];
      }
      if (contributions != 1) all = saturating_mul(contributions, all);
      most = std::max(most, all - had);
    }
    return most;
  }
};

}  // namespace

int64_t most_missing(const PlanProblem& p, const PairPlaces& at, int64_t contributions) {
  const size_t ranks = p.listed_ranks();
  if (p.total_elements == 0 || ranks == 0) return 0;
  if (is_scalar(p)) return saturating_mul(contributions - 1, p.idle_elements);
  Missing missing;
  missing.ranks = ranks;
  missing.contributions = contributions;
  missing.wanted_by_all = missing.kept_by_all = p.idle_elements;
  for (int d = 0; d < p.dims; ++d) {
    const ListPairs::Place pair = at[as_index(d)];
    const int64_t* const wanted = p.pairs.wanted(pair);
    const int64_t* const kept = p.pairs.kept(pair);
    if (p.pairs.alike(pair)) {
      missing.wanted_by_all *= *wanted;
      missing.kept_by_all *= *kept;
      continue;
    }
    missing.wanted[missing.dims] = wanted;
    missing.kept[missing.dims++] = kept;
  }
  switch (missing.dims) {
    case 0:
      missing.ranks = 1;
      return missing.most<0>();
    case 1:
      return missing.most<1>();
    case 2:
      return missing.most<2>();
    default:
      return missing.most<0>();
  }
}

}  // namespace meshplan
