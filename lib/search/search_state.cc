#include "search/search_state.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/all_fetch.h"
#include "search/exchange_floor.h"
#include "search/exchange_peers.h"
#include "search/listing_work.h"
#include "search/work.h"
#include "tensor/box.h"
#include "tensor/largest_elements.h"

namespace meshplan {

uint16_t sharding(const SearchState& s, int dims) {
  uint16_t mask = 0;
  for (int i = 0; i < s.end_of(dims - 1); ++i)
    mask = static_cast<uint16_t>(mask | 1U << s.sub_axis[static_cast<size_t>(i)]);
  return mask;
}

State to_state(const PlanProblem& p, const SearchState& s) {
  State state;
  state.shards.resize(p.tensor.shape.size());
  auto joined = [](std::vector<SubAxis>& list, const SubAxis& sub_axis) {
    if (!list.empty() && list.back().mesh_dim == sub_axis.mesh_dim &&
        list.back().before * list.back().size == sub_axis.before) {
      list.back().size *= sub_axis.size;
    } else {
      list.push_back(sub_axis);
    }
  };
  for (int d = 0; d < p.dims; ++d) {
    for (int i = s.begin_of(d); i < s.end_of(d); ++i) {
      joined(state.shards[static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)])],
             p.sub_axis[s.sub_axis[static_cast<size_t>(i)]]);
    }
  }
  for (int i = 0; i < p.sub_axes; ++i) {
    bool source = (s.pending >> i & 1) != 0;
    if (!source && (s.made >> i & 1) == 0) continue;
    const SubAxis& sub_axis = p.sub_axis[static_cast<size_t>(i)];
    ReduceOp op =
        source ? p.source_op[static_cast<size_t>(i)] : p.target_op[static_cast<size_t>(i)];
    if (!state.partial.empty()) {
      PendingSubAxis& last = state.partial.back();
      if (last.op == op && last.sub_axis.mesh_dim == sub_axis.mesh_dim &&
          last.sub_axis.before * last.sub_axis.size == sub_axis.before) {
        last.sub_axis.size *= sub_axis.size;
        continue;
      }
    }
    state.partial.push_back({sub_axis, op});
  }
  return state;
}

SubAxisRun run_of_sub_axes(const PlanProblem& p, const SearchState& s, int d, int begin) {
  const SubAxis& start = p.sub_axis[s.sub_axis[as_index(begin)]];
  SubAxisRun run{begin, 1, 1};
  for (; run.end < s.end_of(d); ++run.end) {
    const size_t sub_axis = s.sub_axis[as_index(run.end)];
    if (p.sub_axis[sub_axis].mesh_dim != start.mesh_dim ||
        p.sub_axis[sub_axis].before != start.before * run.parts)
      break;
    run.parts *= p.size[sub_axis];
  }
  run.cut_into = start.before == 1 ? p.mesh_sizes[static_cast<size_t>(start.mesh_dim)] : run.parts;
  return run;
}

bool shards_nest(const PlanProblem& p, const SearchState& s, int d, int k) {
  if (p.even || k <= 0 || k >= s.length(d)) return true;
  const int cut = s.begin_of(d) + k;
  const SubAxis& before = p.sub_axis[s.sub_axis[as_index(cut - 1)]];
  const SubAxis& behind = p.sub_axis[s.sub_axis[as_index(cut)]];
  if (before.mesh_dim != behind.mesh_dim || before.before * before.size != behind.before)
    return true;
  // The widths that shards have where the run begins.
  std::vector<int64_t> widths{p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])]};
  for (int i = s.begin_of(d); i < s.end_of(d);) {
    const SubAxisRun run = run_of_sub_axes(p, s, d, i);
    if (run.end <= cut) {
      std::vector<int64_t> next;
      for (const int64_t width : widths) {
        const int64_t chunk = run.chunk_of(width);
        for (const int64_t part : {std::min(chunk, width), chunk > 0 ? floor_mod(width, chunk) : 0})
          if (std::find(next.begin(), next.end(), part) == next.end()) next.push_back(part);
      }
      widths = std::move(next);
      i = run.end;
      continue;
    }
    if (p.sub_axis[s.sub_axis[as_index(i)]].before == 1) return true;  // as the whole dim is cut
    int64_t parts_before = 1;
    for (int j = i; j < cut; ++j) parts_before *= p.size[s.sub_axis[as_index(j)]];
    const int64_t parts_behind = floor_div(run.parts, parts_before);
    return std::all_of(widths.begin(), widths.end(), [&](int64_t width) {
      const int64_t wide = ceil_div(width, parts_before);
      return wide >= width || wide == ceil_div(width, run.parts) * parts_behind;
    });
  }
  return true;
}

bool cuts_evenly(const PlanProblem& p, const SearchState& s) {
  for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
    if (!cuts_evenly(p, s, d)) return false;
  }
  return true;
}

bool cuts_evenly(const PlanProblem& p, const SearchState& s, int d) {
  int64_t width = p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
  for (int i = s.begin_of(d); i < s.end_of(d);) {
    const SubAxisRun run = run_of_sub_axes(p, s, d, i);
    if (floor_mod(width, run.cut_into) != 0) return false;
    width = floor_div(width, run.parts);
    i = run.end;
  }
  return true;
}

int64_t box_elements(const PlanProblem& p, const SearchState& s) {
  if (p.even) {
    int64_t parts = 1;
    for (int i = 0; i < s.end_of(p.dims - 1); ++i)
      parts *= p.size[s.sub_axis[static_cast<size_t>(i)]];
    return floor_div(p.total_elements, parts);
  }
  if (p.total_elements == INT64_MAX)
    return largest_elements(to_state(p, s), p.tensor.shape, p.mesh_sizes);
  return p.idle_elements * p.sides.lists(p, s).widest;
}

int64_t shared_elements(const PlanProblem& p, const SearchState& a, const SearchState& b) {
  int64_t elements = p.idle_elements;
  if (is_scalar(p)) return elements;
  const RankSides::Lists& of_a = p.sides.lists(p, a);
  const RankSides::Lists& of_b = p.sides.lists(p, b);
  for (size_t d = 0; d < as_index(p.dims); ++d)
    elements *= std::min(of_a.along[d]->widest, of_b.along[d]->widest);
  return elements;
}

int64_t group_size(const PlanProblem& p, uint16_t mask) {
  int64_t size = 1;
  for (unsigned left = mask; left != 0; left &= left - 1)
    size *= p.size[as_index(__builtin_ctz(left))];
  return size;
}

std::vector<SubAxis> mesh_sub_axes(const PlanProblem& p, uint16_t mask) {
  std::vector<SubAxis> sub_axes;
  for (int i = 0; i < p.sub_axes; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const SubAxis& sub_axis = p.sub_axis[static_cast<size_t>(i)];
    if (!sub_axes.empty() && sub_axes.back().mesh_dim == sub_axis.mesh_dim &&
        sub_axes.back().before * sub_axes.back().size == sub_axis.before) {
      sub_axes.back().size *= sub_axis.size;
    } else {
      sub_axes.push_back(sub_axis);
    }
  }
  return sub_axes;
}

const std::vector<GroupShape>& group_shapes(const PlanProblem& p, uint16_t mask) {
  const std::vector<GroupShape>*& cached = p.shapes[mask];
  if (cached == nullptr) {
    const std::vector<SubAxis> sub_axes = mesh_sub_axes(p, mask);
    cached = &p.levels->shapes(sub_axes);
    p.share_work(p.levels->ranks_listed(sub_axes) * work::rank_side);
  }
  return *cached;
}

DigitState digits_of(const PlanProblem& p, const SearchState& s) {
  DigitState out;
  if (p.sub_axes_are_digits) {
    std::memcpy(out.digit.data(), s.sub_axis.data(), s.sub_axis.size());
    out.end = s.end;
    out.pending = static_cast<DigitMask>(s.pending | s.made);
    return out;
  }
  uint8_t count = 0;
  int at = 0;
  for (int d = 0; d < p.dims; ++d) {
    for (; at < s.end_of(d); ++at) {
      const auto sub_axis = s.sub_axis[static_cast<size_t>(at)];
      for (int k = 0; k < p.digit_count[sub_axis]; ++k)
        out.digit[count++] = p.digit_of[sub_axis][static_cast<size_t>(k)];
    }
    out.end[static_cast<size_t>(d)] = count;
  }
  out.pending = 0;
  for (unsigned left = s.pending | s.made; left != 0; left &= left - 1)
    out.pending |= p.digit_set[static_cast<size_t>(__builtin_ctz(left))];
  return out;
}

uint16_t sub_axes_within(const PlanProblem& p, const SubAxis& whole) {
  uint16_t mask = 0;
  for (int i = 0; i < p.sub_axes; ++i) {
    const SubAxis& part = p.sub_axis[as_index(i)];
    if (part.mesh_dim == whole.mesh_dim && part.before >= whole.before &&
        part.before * part.size <= whole.before * whole.size)
      mask = static_cast<uint16_t>(mask | 1U << i);
  }
  return mask;
}

PlanProblem even_part(const PlanProblem& p) {
  PlanProblem even = p;
  even.even = even.only_even = true;
  even.may_move_nothing = p.total_elements == 0;
  if (p.exact_levels) even.all_may_fetch = false;
  for (int d = 0; d < p.dims; ++d) even.frozen[as_index(d)] = common_prefix(p.source, p.target, d);
  even.joins = static_cast<uint16_t>(even.joins & ~frozen_sub_axes(even));
  return even;
}

uint16_t frozen_sub_axes(const PlanProblem& p) {
  unsigned frozen = 0;
  for (int d = 0; d < p.dims; ++d) {
    for (int k = 0; k < p.frozen[as_index(d)]; ++k)
      frozen |= 1U << p.target.sub_axis[as_index(p.target.begin_of(d) + k)];
  }
  return static_cast<uint16_t>(frozen);
}

bool boxes_are_products(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return p.even || (cuts_evenly(p, from) && cuts_evenly(p, to));
}

bool line_up(const PlanProblem& p, const DigitState& from, const DigitState& to, DigitChange& out) {
  if (!p.exact_levels) return false;
  int a = 0;
  int b = 0;
  for (int d = 0; d < p.dims; ++d) {
    const int a_end = from.end[static_cast<size_t>(d)];
    const int b_end = to.end[static_cast<size_t>(d)];
    if (!out.add_dim(p.world, from.digit.data() + a, a_end - a, to.digit.data() + b, b_end - b))
      return false;
    a = a_end;
    b = b_end;
  }
  out.kept = from.pending & to.pending;
  out.reduced = from.pending & ~to.pending;
  out.total_bytes = out.reduced != 0 ? p.digit_reduce_bytes : p.digit_bytes;
  return true;
}

int64_t longest_of_piece(const PlanProblem& p, const DigitState& from, const DigitState& to) {
  int64_t longest = p.idle_longest;
  const std::vector<int64_t>& shape = p.tensor.shape;
  auto parts = [&](const DigitState& s, int d) {
    int64_t n = 1;
    for (int i = d == 0 ? 0 : s.end[as_index(d - 1)]; i < s.end[static_cast<size_t>(d)]; ++i)
      n *= p.world.size(s.digit[static_cast<size_t>(i)]);
    return n;
  };
  for (int d = 0; d < p.dims; ++d) {
    if (p.tensor_dim[static_cast<size_t>(d)] < 0) continue;
    longest = std::max(longest, floor_div(shape[as_index(p.tensor_dim[as_index(d)])],
                                          std::max(parts(from, d), parts(to, d))));
  }
  return longest;
}

namespace {

// Ranks of each unit of the innermost level that want one box of `to`, where levels are exact.
int64_t members_of_box(const PlanProblem& p, const SearchState& to) {
  DigitMask taken = 0;
  for (int i = 0; i < to.end_of(p.dims - 1); ++i)
    taken |= p.digit_set[to.sub_axis[static_cast<size_t>(i)]];
  for (unsigned left = to.pending | to.made; left != 0; left &= left - 1)
    taken |= p.digit_set[static_cast<size_t>(__builtin_ctz(left))];
  return p.world.product(p.world.at_level(0) & ~taken);
}

}  // namespace

bool members_share(const PlanProblem& p, const SearchState& to) {
  return !p.exact_levels || members_of_box(p, to) > 1;
}

bool has_two_levels(const PlanProblem& p) {
  if (!p.exact_levels) return p.topology->levels.size() > 1;
  return (p.world.all() & ~p.world.at_level(0)) != 0;
}

namespace {

// Whether a box may have several holders, and links beyond units may reach one peer slower than
// several: a rank then gains by asking two of them, though it shares its box with no neighbour.
bool may_lap(const PlanProblem& p, const SearchState& from) {
  if (p.in_rounds || (p.all & ~(sharding(from, p.dims) | from.pending | from.made)) == 0)
    return false;
  const auto& levels = p.topology->levels;
  return std::any_of(levels.begin() + 1, levels.end(),
                     [](const TopologyLevel& level) { return level.peer_mb_per_s > 0; });
}

}  // namespace

bool lines_up(const PlanProblem& p, const SearchState& from, const SearchState& to,
              DigitChange& change) {
  if (!p.exact_levels) return false;
  const auto evenly = [&](const SearchState& s) {
    const RankSides::Lists& lists = p.sides.lists(p, s);
    return std::all_of(lists.along.begin(), lists.along.begin() + p.dims,
                       [](const RankSides::Sides* sides) { return sides->even; });
  };
  if (!p.even && !(evenly(from) && evenly(to))) return false;
  return line_up(p, digits_of(p, from), digits_of(p, to), change);
}

bool may_go(const PlanProblem& p, const SearchState& from, const SearchState& to, ExchangeWay way) {
  if (way == ExchangeWay::one_phase) return true;
  if (from.pending != to.pending || !has_two_levels(p)) return false;
  if (way == ExchangeWay::two_phases) return members_share(p, to) || may_lap(p, from);
  if (!p.all_may_fetch || (from.pending | from.made | to.made) != 0) return false;
  DigitChange change;
  if (lines_up(p, from, to, change))
    return members_miss_unevenly(p.world, change) &&
           saturating_mul(p.ranks, p.world.product(change.src_only)) <= whole_mesh_listed;
  return saturating_mul(p.ranks, shards_met(p, from, to)) <= whole_mesh_listed;
}

// What one exchange may list while plans are searched, in pairs of a rank and a shard: fifteen
// milliseconds' work, and as many ranks as bounds list. Beyond it a price is not exact
// (ExchangeCost::exact).
constexpr int64_t searched_pairs = 300'000;
// The same of counting turns (TurnTable).
constexpr int64_t searched_steps = 3'000'000;

bool may_have_far_share(const PlanProblem& p, ExchangeWay way) {
  return way == ExchangeWay::one_phase && !p.in_rounds && p.topology->levels.size() > 1;
}

namespace {

bool reduces_sums(const SearchState& from, const SearchState& to) {
  return ((from.pending | from.made) & ~(to.pending | to.made)) != 0;
}
bool far_share_too(const PlanProblem& p, const SearchState& from, const SearchState& to,
                   ExchangeWay way) {
  return may_have_far_share(p, way) && !reduces_sums(from, to);
}

// What it takes at least, where that is above most_ps.
std::optional<ExchangeCost> floored_above(const PlanProblem& p, const SearchState& from,
                                          const SearchState& to, ExchangeWay way, int64_t most_ps) {
  if (most_ps == INT64_MAX) return std::nullopt;
  ExchangeCost least;
  least.predicted_ps = exchange_floor_ps(p, from, to, way, most_ps);
  if (least.predicted_ps <= most_ps)
    least.predicted_ps =
        std::max(least.predicted_ps, close_exchange_floor_ps(p, from, to, way, most_ps));
  if (least.predicted_ps <= most_ps) return std::nullopt;
  least.at_least = true;
  return least;
}

// By listing, where no closed form says it.
ExchangeCost price_by_listing(const PlanProblem& p, const SearchState& from, const SearchState& to,
                              ExchangeWay way, int64_t most_ps, bool plain) {
  p.work += 2 * work::state;
  const State src = to_state(p, from);
  const State dst = to_state(p, to);
  const bool by_all = way == ExchangeWay::by_all;
  ExchangeQuestion q;
  q.levels = p.levels;
  q.shape = p.tensor.shape;
  q.element_bytes = reduces_sums(from, to) ? p.reduce_element : p.element;
  q.src = &src;
  q.dst = &dst;
  q.phases = phases_of(way);
  if (by_all) q.fetchers = Fetchers::all;
  q.most_listed = by_all ? whole_mesh_listed : searched_pairs;
  q.in_laps_too = !p.in_rounds && !plain && way == ExchangeWay::two_phases;
  q.far_too = !plain && far_share_too(p, from, to, way);
  q.most_ps = most_ps;
  const ListingWork listings(*p.levels);
  const ExchangeCost cost = price_exchange(q);
  p.work += listings.since();
  if (!cost.exact && !by_all) {
    p.work += work::step;
    p.estimated = true;
  }
  return cost;
}

}  // namespace

ExchangeCost price_between(const PlanProblem& p, const SearchState& from, const SearchState& to,
                           ExchangeWay way, int64_t most_ps, bool plain) {
  const bool by_all = way == ExchangeWay::by_all;
  DigitChange change;
  const DigitState a = digits_of(p, from);
  const DigitState b = digits_of(p, to);
  bool in_closed_form = false;
  if (!by_all && boxes_are_products(p, from, to) && line_up(p, a, b, change)) {
    p.work += phases_of(way) == 2 ? work::price_shared : work::price;
    change.longest = longest_of_piece(p, a, b);
    DigitQuestion q{p.levels,     &p.world, &change,       phases_of(way),
                    std::nullopt, &p.turns, searched_steps};
    q.in_laps_too = !p.in_rounds && !plain;
    q.most_ps = most_ps;
    const int64_t steps = p.turns.steps();
    const auto cost = price_digits(q);
    p.work += (p.turns.steps() - steps) / work::steps_a_unit;
    const bool far_too = !plain && far_share_too(p, from, to, way);
    if (cost && (!far_too || cost->least_far_ps >= cost->predicted_ps)) return *cost;
    if (cost && cost->least_far_ps > most_ps) return at_least_far(*cost);
    in_closed_form = cost.has_value();
  }
  if (!in_closed_form) {
    if (const auto least = floored_above(p, from, to, way, most_ps)) return *least;
  }
  return price_by_listing(p, from, to, way, most_ps, plain);
}

}  // namespace meshplan
