// bound_between and several_between_ps of search_state.h.
#include <algorithm>
#include <optional>

#include "base/int_math.h"
#include "search/pair_memo.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

bool all_even(const PlanProblem& p, const PairPlaces& at) {
  for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
    if (!p.pairs.even(at[as_index(d)])) return false;
  }
  return true;
}

}  // namespace

uint16_t joined_sub_axes(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  const unsigned made = (to.made & ~from.made) | (to.pending & ~from.pending);
  return static_cast<uint16_t>(made | (from.pending & to.pending & p.kept));
}

namespace {

// Ranks that hold part of what some rank wants, each shard and each contribution to it on one of
// its own: at least so many.
int64_t ranks_met(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  int64_t ranks = group_size(p, static_cast<uint16_t>(from.pending & ~to.pending));
  if (is_scalar(p) || p.total_elements == 0) return ranks;
  const RankSides::Lists& before = p.sides.lists(p, from);
  const RankSides::Lists& after = p.sides.lists(p, to);
  for (int d = 0; d < p.dims; ++d)
    ranks = saturating_mul(ranks, p.meetings.most(p.meetings.number(p, before, after, d)).shards);
  return ranks;
}

// What is asked of a plan between two states.
struct Between {
  bool growing = false;
  bool several = false;  // steps that communicate
  int64_t enough_ps = INT64_MAX;
};

// What a rank takes at least to receive so much, over links of whatever levels.
int64_t receiving_ps(const PlanProblem& p, const LeastTimes::Asked& asked, int64_t bytes) {
  const uint32_t every_level = (1U << p.topology->levels.size()) - 1;
  return p.times.ps(asked, bytes, 1, every_level);
}

Bounds bound_lined_up(const PlanProblem& p, DigitChange& change, uint16_t joined, bool within_moves,
                      bool several) {
  DigitMask made = 0;
  for (unsigned left = joined; left != 0; left &= left - 1)
    made |= p.digit_set[static_cast<size_t>(__builtin_ctz(left))];
  change.kept &= ~made;
  if (change.reduced != 0 || joined != 0)
    change.total_bytes = std::min(p.digit_bytes, p.digit_reduce_bytes);
  return bound_digits(*p.topology, p.times, p.world, change, within_moves, made, several);
}

Bounds bound_of(const PlanProblem& p, const SearchState& from, const SearchState& to,
                const Between& asks) {
  p.work += work::between;
  const uint16_t joined = joined_sub_axes(p, from, to);
  const bool reduces = (from.pending & ~to.pending & ~joined) != 0;
  DigitChange change;
  if (p.even && line_up(p, digits_of(p, from), digits_of(p, to), change))
    return bound_lined_up(p, change, joined, !asks.growing && joined == 0, asks.several);
  Bounds b;
  std::optional<PairPlaces> known;
  const auto at = [&]() -> const PairPlaces& {
    if (!known) known = pairs_of_lists(p, from, to);
    return *known;
  };
  // On the way boxes may be no products: only what holds for any plan counts.
  if (!p.even && !asks.growing && all_even(p, at()) &&
      line_up(p, digits_of(p, from), digits_of(p, to), change))
    b = bound_lined_up(p, change, joined, false, asks.several);
  const int64_t met = joined == 0 && p.times.grow() ? ranks_met(p, from, to) : 2;
  int64_t missing = 0;
  if (reduces) {
    // Rank 0 has the largest target and holds a contribution alone.
    missing = box_elements(p, to);
  } else if (asks.growing) {
    // What `from` grows to holds no more than it.
    if (joined == 0) missing = std::max<int64_t>(0, box_elements(p, to) - box_elements(p, from));
  } else if ((sharding(from, p.dims) & joined) == 0) {
    missing = most_missing(p, at(), 1);
    p.work += static_cast<int64_t>(p.listed_ranks()) / 4;
  }  // else zero-filled contributions may spare any rank its bytes
  missing = ceil_div(missing, group_size(p, joined));
  if (missing > 0) {
    const int64_t element =
        reduces || joined != 0 ? std::min(p.element, p.reduce_element) : p.element;
    const int64_t bytes = saturating_mul(missing, element);
    b.bytes = std::max(b.bytes, bytes);
    if (has_tables(*p.topology)) return b;
    LeastTimes::Asked asked;
    asked.ranks = met;
    asked.several = asks.several;
    b.ps = std::max(b.ps, receiving_ps(p, asked, bytes));
  }
  if (joined == 0 && p.units_tell && b.ps <= asks.enough_ps)
    b.ps = std::max(b.ps, unit_bound_ps(p, from, to, at(), {met, asks.several}, asks.enough_ps));
  return b;
}

struct OfBounds {};

}  // namespace

Bounds bound_between(const PlanProblem& p, const SearchState& from, const SearchState& to,
                     bool growing, int64_t enough_ps) {
  return PairMemo<OfBounds, Bounds>::of(p, from, to, growing ? 1 : 0, enough_ps, [&] {
    return bound_of(p, from, to, {growing, false, enough_ps});
  });
}

int64_t larger_box_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                      int64_t from_elements, int64_t to_elements) {
  if (has_tables(*p.topology) || joined_sub_axes(p, from, to) != 0) return 0;
  const bool reduces = (from.pending & ~to.pending) != 0;
  const int64_t missing = to_elements - (reduces ? 0 : from_elements);
  if (missing <= 0) return 0;
  return receiving_ps(p, {}, saturating_mul(missing, wire_element(p, from, to)));
}

int64_t several_between_ps(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return bound_of(p, from, to, {false, true, INT64_MAX}).ps;
}

}  // namespace meshplan
