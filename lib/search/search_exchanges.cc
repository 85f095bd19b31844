// The exchanges that lead on from a state.
#include <algorithm>
#include <utility>

#include "search/exchange_floor.h"
#include "search/moves.h"
#include "search/search_run.h"

namespace meshplan {
namespace {

// Of what lies between the time of the best plan and what is looked at: how far ahead exchanges are
// priced. Where latencies grow with ranks, bounds lie further below prices, so that a short horizon
// would be reached again and again.
constexpr int64_t horizon_percent = 20;
constexpr int64_t far_horizon_percent = 70;
// Plans that gather last are tried, so many, where lists of aims are long.
constexpr size_t most_gathers_last = 4;
constexpr size_t most_gathers_last_of_hard = 64;
// Plans that scatter first: so many are tried, each list of them and trying them for such a share
// of the budget.
constexpr size_t most_scatters = 1024;
constexpr int64_t scatters_percent = 2;
constexpr size_t straight_aims = 8;
// Finer boxes of the target are listed for such a share of the budget.
constexpr int64_t finers_percent = 20;
constexpr int least_sub_axes_to_gather_last = 4;

int64_t finers_work(const SearchOptions& options) {
  return saturating_mul(floor_div(options.work_budget, 100), finers_percent);
}

}  // namespace

void Search::seed() {
  if (!options_.exchange) return;
  SearchState landing = p_.target;
  landing.made = 0;
  if (p_.source == landing || !may_hold(landing)) return;
  for (const ExchangeWay way : exchange_ways) {
    if (!may_go(p_, p_.source, landing, way)) continue;
    if (way == ExchangeWay::two_phases && has_best_ && landing == p_.target && world_.usable() &&
        world_.exchange_floors(packed_source_, packed_target_).two_phases_ps > best_.ps)
      continue;
    const int64_t most_ps = has_best_ ? best_.ps : INT64_MAX;
    int64_t least_ps = least_.ps;
    if (!world_.usable())
      least_ps = std::max(least_ps, exchange_floor_ps(p_, p_.source, landing, way, most_ps));
    const auto priced = priced_exchange(p_.source, landing, way, most_ps, least_ps);
    if (!priced) continue;
    const Edge& edge = *priced;
    // Of plans that were found before and cost the same the one of less memory.
    const bool wins_tie = options_.hard && options_.known->exists && edge.phases == 1 &&
                          edge.cost == best_ && needs_less_than_best(edge);
    if (has_best_ && !(edge.cost < best_) && !wins_tie) continue;
    if (p_.peak_limit != INT64_MAX && peak_of(p_, p_.source, edge) > p_.peak_limit) continue;
    has_best_ = wanted_ = true;
    best_ = edge.cost;
    best_edges_.assign(1, edge);
    make_partials(landing, best_edges_);
  }
}

bool Search::needs_less_than_best(const Edge& edge) const {
  int64_t peak = 0;
  SearchState at = p_.source;
  for (const Edge& step : best_edges_) {
    peak = std::max(peak, peak_of(p_, at, step));
    at = step.to;
  }
  return peak_of(p_, p_.source, edge) < peak;
}

void Search::make_partials(SearchState at, std::vector<Edge>& edges) {
  for (int i = 0; i < p_.sub_axes; ++i) {
    if ((p_.target.made >> i & 1) == 0) continue;
    Edge edge;
    edge.op = Op::to_partial;
    edge.group = static_cast<uint16_t>(1U << i);
    at.made = static_cast<uint16_t>(at.made | edge.group);
    edge.to = at;
    edges.push_back(edge);
  }
}

void Search::try_gathers_last() {
  const auto reduced = static_cast<uint16_t>(p_.source.pending & ~p_.target.pending);
  if (p_.sub_axes < least_sub_axes_to_gather_last || !has_best_ || !world_.usable()) return;
  if (p_.target.made != 0 || p_.kept != 0 || !may_reduce(p_, p_.source, reduced)) return;
  finer_targets(p_, world_, packed_source_, Until::one_exchange, best_.ps, most_gathers_last,
                finers_work(options_), work_.finer);
  for (const FinerTarget& finer : work_.finer) {
    if (finer.least_ps >= best_.ps) break;
    const Edge edge = exchange_edge(p_, p_.source, finer.at, ExchangeWay::one_phase, best_.ps);
    if (edge.cost.ps >= best_.ps) continue;
    const int32_t to = table_.intern(finer.at);
    relax(source_, edge, to);
    if (node(to).reached && node(to).parent == source_) collectives(to, finer.at, true);
  }
}

void Search::try_reductions_first() {
  const auto reduced = static_cast<uint16_t>(p_.source.pending & ~p_.target.pending);
  if (reduced == 0 || p_.sub_axes < least_sub_axes_to_gather_last || !has_best_ ||
      !world_.usable() || p_.target.made != 0 || p_.kept != 0 || is_scalar(p_))
    return;
  const uint16_t inside = sums_inside_units(p_, reduced);
  finer_targets(p_, world_, packed_source_, Until::any_steps, best_.ps,
                options_.hard ? most_gathers_last_of_hard : most_gathers_last,
                finers_work(options_), work_.finer);
  work_.finer.push_back({0, p_.target});
  for (const FinerTarget& finer : work_.finer) {
    reduce_first(finer.at, reduced);
    if (options_.hard) arrange_first(finer.at, reduced);
    if (inside != 0 && inside != reduced) reduce_first(finer.at, inside);
  }
}

int32_t Search::slice_and_scatter(const SearchState& to, uint16_t reduced) {
  SearchState at = p_.source;
  int32_t from = source_;
  const SearchState sliced = reduced == 0 ? to : before_scatter(p_, to, reduced);
  for (int d = 0; d < p_.dims; ++d) {
    for (int i = at.length(d); i < sliced.length(d); ++i) {
      Edge slice;
      slice.op = Op::slice;
      const uint8_t sub_axis = sliced.sub_axis[as_index(sliced.begin_of(d) + i)];
      slice.group = static_cast<uint16_t>(1U << sub_axis);
      append(at, p_.dims, d, sub_axis);
      slice.to = at;
      const int32_t next = table_.intern(at);
      relax(from, slice, next);
      from = next;
    }
  }
  return reduced == 0 || !node(from).reached ? from : scatter_from(from, at, to, reduced);
}

int32_t Search::scatter_from(int32_t from, const SearchState& at, const SearchState& to,
                             uint16_t reduced) {
  Edge scatter;
  scatter.op = Op::reduce_scatter;
  scatter.group = scatter.reduced = reduced;
  scatter.to = to;
  price_collective(p_, at, scatter);
  const int32_t scattered = table_.intern(to);
  relax(from, scatter, scattered);
  return scattered;
}

void Search::reduce_first(const SearchState& aim, uint16_t reduced) {
  if (p_.allowed[reduced] == 0 || !may_reduce(p_, p_.source, reduced)) return;
  const auto found = scattered_as(p_, aim, reduced);
  if (!found) return;
  const SearchState to = *found;
  const int32_t scattered = slice_and_scatter(to, reduced);
  if (!node(scattered).reached || to == p_.target) return;
  collectives(scattered, to, true);
  if (to == aim) return;
  exchange_to(scattered, to, world_.pack(to), aim, world_.pack(aim), -1);
  const int32_t landed = table_.intern(aim);
  if (node(landed).reached && !(aim == p_.target)) collectives(landed, aim, true);
}

void Search::arrange_first(const SearchState& aim, uint16_t reduced) {
  if (p_.allowed[reduced] == 0 || !may_reduce(p_, p_.source, reduced)) return;
  if ((reduced & ~sharding(aim, p_.dims)) != 0 || p_.source.pending != reduced) return;
  const SearchState at = before_scatter(p_, aim, reduced);
  if (p_.only_even && !cuts_evenly(p_, at)) return;
  int32_t scattered = 0;
  if (slices_lead_to(p_, p_.source, at)) {
    scattered = slice_and_scatter(aim, reduced);
  } else {
    exchange_to(source_, p_.source, packed_source_, at, world_.pack(at), -1);
    const int32_t arranged = table_.intern(at);
    if (!node(arranged).reached) return;
    scattered = scatter_from(arranged, at, aim, reduced);
  }
  gather_to_target(scattered, aim);
}

void Search::gather_to_target(int32_t from, const SearchState& at) {
  if (!node(from).reached || at == p_.target) return;
  Edge gather;
  gather.op = Op::all_gather;
  gather.group = static_cast<uint16_t>(sharding(at, p_.dims) & ~sharding(p_.target, p_.dims));
  gather.to = p_.target;
  if (p_.allowed[gather.group] == 0) return;
  price_collective(p_, at, gather);
  relax(from, gather, goal_);
}

void Search::try_scatters_first() {
  if (!options_.hard || !has_best_ || !world_.usable() || p_.target.made != 0 || p_.kept != 0 ||
      is_scalar(p_))
    return;
  const int64_t most_work = options_.work_budget / 100 * scatters_percent;
  const auto try_each = [&](auto try_way) {
    const int64_t last_work = saturating_add(p_.work, most_work);
    for (const ScatterWay& way : work_.scatters) {
      if (way.least_ps >= best_.ps || p_.work > last_work || exhausted_) break;
      try_way(way);
    }
  };
  list_scattered(p_, world_, best_.ps, most_scatters, most_work, work_.scatters);
  try_each([&](const ScatterWay& way) {
    const int32_t scattered = slice_and_scatter(way.at, way.reduced);
    if (node(scattered).reached) exchange_to_target(scattered, way.at);
  });
  list_gathered(p_, world_, best_.ps, most_scatters, most_work, work_.scatters);
  try_each([&](const ScatterWay& way) {
    if (way.arranged) return arrange_first(way.at, way.reduced);
    const SearchState to = *scattered_as(p_, way.at, way.reduced);
    const int32_t scattered = slice_and_scatter(to, way.reduced);
    if (!node(scattered).reached) return;
    if (!(to == way.at))
      exchange_to(scattered, to, world_.pack(to), way.at, world_.pack(way.at), -1);
    gather_to_target(table_.intern(way.at), way.at);
  });
}

void Search::exchanges_straight(int32_t from, const SearchState& at) {
  exchange_to_target(from, at);
  if (!world_.usable() || p_.target.made != 0 || p_.kept != 0) return;
  const Packed packed = world_.pack(at);
  if (from == source_)
    finer_targets(p_, world_, packed_source_, Until::any_steps, has_best_ ? best_.ps : INT64_MAX,
                  straight_aims, finers_work(options_), work_.finer);
  for (size_t i = 0; i < work_.finer.size(); ++i) {
    const SearchState finer = work_.finer[i].at;
    if (!(finer == at) && may_reduce(p_, at, at.pending))
      exchange_to(from, at, packed, finer, world_.pack(finer), -1);
  }
}

void Search::exchange_to_target(int32_t from, const SearchState& at) {
  SearchState landing = p_.target;
  landing.made = at.made;
  if (at == landing || (at.pending & landing.pending) != landing.pending) return;
  exchange_to(from, at, world_.pack(at), landing, world_.pack(landing), -1);
}

void Search::exchange_to(int32_t from, const SearchState& at, const Packed& packed,
                         const SearchState& to, const Packed& packed_to, int64_t left,
                         int64_t soonest, int64_t* known_reached) {
  const int64_t gone = node(from).g.ps;
  const int64_t ahead = std::max<int64_t>(left, 0);
  const int64_t spent = saturating_add(gone, ahead);
  int64_t reached = known_reached == nullptr ? INT64_MAX : *known_reached;
  ExchangeFloors floors;
  p_.work += world_.usable() ? work::packed_floors : work::floors;
  const bool floored = has_best_ && world_.usable();
  if (floored) {
    floors = world_.exchange_floors(packed, packed_to);
    const int64_t floor = floors.least_ps(at.pending != to.pending);
    const int64_t least_ps = std::max(soonest, saturating_add(gone, floor));
    if (least_ps > reached || saturating_add(least_ps, ahead) > best_.ps) return;
    if (known_reached != nullptr) reached = *known_reached = reached_in(to);
  }
  for (const ExchangeWay way : exchange_ways) {
    if (floored && floors.of(way) == INT64_MAX) continue;
    if (!may_go(p_, at, to, way)) continue;
    if (floored) {
      PlanCost least = node(from).g;
      least.ps = std::max(soonest, saturating_add(gone, floors.of(way)));
      least.collectives += phases_of(way);
      if (least.ps > reached || !better_than_best(through(least, ahead))) continue;
      if (left >= 0 && not_now(saturating_add(least.ps, left))) continue;
    }
    const int64_t most_ps = has_best_ ? best_.ps - spent : INT64_MAX;
    const int64_t least_ps = std::max(soonest, saturating_add(gone, exchange_latency_ps_));
    const auto priced =
        priced_exchange(at, to, way, most_ps, saturating_add(least_ps, std::max<int64_t>(left, 0)));
    if (!priced) continue;
    const Edge& edge = *priced;
    if (has_best_ && saturating_add(spent, edge.cost.ps) > best_.ps) continue;
    const int32_t reached_node = table_.intern(to);
    if (left >= 0) node(reached_node).h = std::max(node(reached_node).h, left);
    relax(from, edge, reached_node);
    if (known_reached != nullptr && node(reached_node).reached)
      reached = *known_reached = node(reached_node).g.ps;
  }
}

void Search::exchange_later(int32_t from, const SearchState& at, const SearchState& to,
                            int64_t left, int64_t soonest, int64_t most) {
  // Slices get there for nothing.
  if (slices_lead_to(p_, at, to)) return;
  for (const ExchangeWay way : exchange_ways) {
    if (!may_go(p_, at, to, way)) continue;
    Candidate c{from, way, node(from).g, left, to, node(from).g};
    const int64_t floor = exchange_floor_ps(p_, at, to, way, most - c.g.ps);
    c.least.ps = std::max(soonest, saturating_add(c.g.ps, floor));
    if (c.least.ps > most) continue;
    c.least.collectives += phases_of(way);
    // Once the question is hard, bounds are raised first.
    if (through(c.least, left).ps <= frontier_ && !raises_next()) {
      price_candidate(c);
    } else {
      push(c);
    }
  }
}

void Search::push(const Candidate& c) {
  const PlanCost f = through(c.least, c.left);
  if (has_best_ && !better_than_best(f)) return;
  candidates_.push_back(c);
  open_.push_back({f, ~static_cast<int32_t>(candidates_.size() - 1), c.g});
  std::push_heap(open_.begin(), open_.end(), OpensLater());
}

void Search::price_candidate(const Candidate& c) {
  if (c.g != node(c.from).g) return;
  const int32_t to = table_.intern(c.to);
  if (node(to).reached && node(to).g < c.least) return;
  // It need not be priced to the end where something else is to be looked at sooner.
  int64_t soonest = has_best_ ? best_.ps : INT64_MAX;
  if (!open_.empty()) soonest = std::min(soonest, std::max(open_.front().f.ps, frontier_));
  const int64_t most_ps = soonest == INT64_MAX ? soonest : soonest - saturating_add(c.g.ps, c.left);
  const SearchState at = node(c.from).at;
  const auto edge = priced_exchange(at, c.to, c.way, most_ps, saturating_add(c.least.ps, c.left));
  if (!edge) return;
  if (edge->at_least) {
    Candidate later = c;
    later.least.ps = std::max(c.least.ps, saturating_add(c.g.ps, edge->cost.ps));
    return push(later);
  }
  if (has_best_ && saturating_add(saturating_add(c.g.ps, edge->cost.ps), c.left) > best_.ps) return;
  node(to).h = std::max(node(to).h, c.left);
  relax(c.from, *edge, to);
}

std::optional<Edge> Search::priced_exchange(const SearchState& from, const SearchState& to,
                                            ExchangeWay way, int64_t most_ps, int64_t least_ps) {
  const bool before = std::exchange(p_.estimated, false);
  Edge edge = exchange_edge(p_, from, to, way, most_ps);
  const bool exact = !p_.estimated;
  p_.estimated = before;
  if (exact) return edge;
  int64_t& least_left_out = has_best_ ? unpriced_ps_ : estimated_ps_;
  least_left_out = std::min(least_left_out, least_ps);
  if (has_best_) return std::nullopt;
  edge.estimated = true;
  return edge;
}

AimList& Search::aims(uint16_t pending, uint16_t made) {
  for (size_t i = 0; i < work_.used; ++i) {
    if (work_.lists[i].pending == pending && work_.lists[i].made == made)
      return work_.lists[i].list;
  }
  if (work_.used == work_.lists.size()) work_.lists.emplace_back();
  SearchWorkspace::KnownAims& known = work_.lists[work_.used++];
  known.pending = pending;
  known.made = made;
  AimQuestion q;
  q.problem = &p_;
  q.world = &world_;
  q.source = &packed_source_;
  q.target = &packed_target_;
  q.pending = pending;
  q.made = made;
  if (has_best_) q.most_ps = best_.ps;
  q.least_latency_ps = step_latency_ps_;
  const int64_t visits = aim_visits_;
  if (!list_aims(q, aim_visits_, known.list)) shortcuts_.add(Shortcut::few_aims);
  p_.work += (visits - aim_visits_) * work::aim;
  return known.list;
}

void Search::exchanges(int32_t from) {
  const SearchState at = node(from).at;
  const PlanCost g = node(from).g;
  const Packed packed = world_.pack(at);
  const uint16_t open = at.pending;
  looked_to_ = node(from).looked_to;
  const int64_t percent = p_.times.grow() ? far_horizon_percent : horizon_percent;
  look_to_ =
      has_best_ ? saturating_add(frontier_, (best_.ps - frontier_) / 100 * percent) : INT64_MAX;
  next_look_ = INT64_MAX;
  for (uint16_t q = open;; q = static_cast<uint16_t>((q - 1) & open)) {
    if (may_reduce(p_, at, q)) exchanges_reducing(from, at, packed, q);
    if (q == 0 || exhausted_) break;
  }
  node(from).looked_to = look_to_;
  looked_to_ = -1;
  if (next_look_ != INT64_MAX && !exhausted_) {
    PlanCost f = g;
    f.ps = next_look_;
    ++f.collectives;
    if (better_than_best(f)) {
      open_.push_back({f, from, g});
      std::push_heap(open_.begin(), open_.end(), OpensLater());
    }
  }
  look_to_ = INT64_MAX;
}

void Search::exchanges_reducing(int32_t from, const SearchState& at, const Packed& packed,
                                uint16_t q) {
  const auto pending = static_cast<uint16_t>(at.pending & ~q);
  const PlanCost g = node(from).g;
  AimList& list = aims(pending, at.made);
  const int64_t soonest = saturating_add(g.ps, exchange_latency_ps_);
  for (const AimGroup& group : list.groups) {
    const int64_t nearest_ps = saturating_add(soonest, list.keys[group.begin].left);
    if (has_best_ && nearest_ps > best_.ps) break;
    if (nearest_ps > look_to_) {
      next_look_ = std::min(next_look_, nearest_ps);
      break;
    }
    // Aims that are reached sooner than any exchange from here could are of no use.
    uint32_t k = group.begin;
    while (k < group.end && list.keys[k].reached <= soonest) ++k;
    if (k == group.end) continue;
    int64_t outer = soonest;
    if (world_.usable()) {
      p_.work += work::floors;
      const Packed& first = list.aims[list.keys[k].aim].packed;
      outer = std::max(outer, saturating_add(g.ps, std::max(world_.outer_bound_ps(packed, first),
                                                            world_.reordered_ps(packed, first))));
    }
    for (; k < group.end; ++k) {
      AimKey& key = list.keys[k];
      const int64_t least = saturating_add(outer, key.left);
      if (has_best_ && least > best_.ps) break;
      if (least > look_to_) {
        next_look_ = std::min(next_look_, least);
        break;
      }
      if (key.reached < outer || key.reached <= soonest) continue;
      p_.work += work::key;
      if (stops()) return;
      if (has_best_ && least == best_.ps && g.collectives + 1 + (key.left > 0) > best_.collectives)
        continue;
      const Aim& aim = list.aims[key.aim];
      if (aim.at == at) continue;
      if (!world_.usable()) {
        key.reached = reached_in(aim.at);
        if (key.reached <= soonest) continue;
        // What the way to the aim may take at most.
        int64_t most = key.reached;
        if (has_best_) most = std::min(most, best_.ps - key.left);
        // By levels peers cost little beside what the bound says.
        if (p_.times.grow() && few_peers_floor(p_, at, aim.at, most - g.ps).ps > most - g.ps)
          continue;
        const int64_t here =
            saturating_add(g.ps, std::max(from == source_ ? aim.before : 0,
                                          boxes_floor(p_, at, aim.at, most - g.ps).ps));
        const int64_t there = std::max(outer, here);
        if (here > most || not_now(saturating_add(there, key.left))) continue;
        exchange_later(from, at, aim.at, key.left, there, most);
        continue;
      }
      exchange_to(from, at, packed, aim.at, aim.packed, key.left, outer, &key.reached);
    }
  }
}

}  // namespace meshplan
