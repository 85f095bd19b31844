// Better bounds on what is left, where a question turns out to be hard.
#include "cost/finer_tiers.h"
#include "search/joining_sums.h"
#include "search/moves.h"
#include "search/search_run.h"

namespace meshplan {
namespace {

// Of the budget, and of what is left of it once the states are listed.
constexpr int64_t rests_percent = 95;
// Of the work of the floors between any two states, where they pack: so much a search takes without
// bounds by steps first, as it may well need no more. With sums pending few states lead on, and
// bounds by the outer links alone often do.
constexpr int64_t floors_percent = 5;
constexpr int64_t floors_of_easier_percent = 30;
constexpr int64_t unused_percent = 97;
constexpr int64_t outside_percent = 20;
// Contributions to more bytes than that may be more than numbers hold.
constexpr int64_t most_bytes_outside = INT64_MAX >> 20;

}  // namespace

bool Search::list_every_aim() {
  const int64_t before = p_.work;
  const auto open = static_cast<uint16_t>(p_.source.pending | p_.joins);
  for (uint16_t q = open;; q = static_cast<uint16_t>((q - 1) & open)) {
    // A sum joins others alone, but they may be reduced before it.
    (void)aims(q, 0);
    if (p_.work - before > options_.work_budget / 2) return false;
    if (q == 0) break;
  }
  return !shortcuts_.has(Shortcut::few_aims);
}

bool Search::list_useful_states() {
  if (!list_every_aim()) return false;
  work_.left.clear();
  for (size_t i = 0; i < work_.used; ++i) {
    const AimList& list = work_.lists[i].list;
    for (const AimKey& key : list.keys) {
      const Aim& aim = list.aims[key.aim];
      work_.left.push_back({aim.at, aim.before, key.left});
    }
  }
  NodeTable sliced;
  list_sliced(p_.source, sliced);
  for (const SearchNode& n : sliced.nodes) {
    const int64_t left = rest(table_.intern(n.at));
    const auto is_same = [&](const LeftState& state) { return state.at == n.at; };
    if (left <= best_.ps && std::none_of(work_.left.begin(), work_.left.end(), is_same))
      work_.left.push_back({n.at, 0, left});
  }
  return true;
}

void Search::list_sliced(const SearchState& at, NodeTable& sliced) {
  if (sliced.find(at) >= 0) return;
  (void)sliced.intern(at);
  p_.work += work::state;
  if (rest(table_.intern(at)) > best_.ps) return;
  for (unsigned free = p_.all & ~at.pending & ~at.made & ~sharding(at, p_.dims); free != 0;
       free &= free - 1) {
    for (int d = 0; d < p_.dims && !is_scalar(p_); ++d) {
      SearchState next = at;
      append(next, p_.dims, d, static_cast<uint8_t>(__builtin_ctz(free)));
      if (!p_.only_even || cuts_evenly(p_, next)) list_sliced(next, sliced);
    }
  }
  each_joining_sum(p_, at, [&](const SearchState& next, uint16_t /*sub_axis*/) {
    if (may_hold(next)) list_sliced(next, sliced);
  });
}

void Search::take_way(const KnownWay& way) {
  int32_t from = source_;
  for (const KnownStep& step : way) {
    const SearchState at = node(from).at;
    const int32_t to = table_.intern(step.to);
    std::vector<Edge> edges;
    if (step.way) {
      edges.push_back(exchange_edge(p_, at, step.to, *step.way));
    } else {
      (void)collective_moves(p_, at, edges);
    }
    for (const Edge& edge : edges) {
      if (edge.to == step.to) relax(from, edge, to);
    }
    if (!node(to).reached) return;  // what is known by now takes less
    from = to;
  }
}

void Search::raise_outside() {
  if (!has_two_levels(p_) || p_.target.pending != 0 || p_.digit_bytes > most_bytes_outside ||
      !list_every_aim())
    return;
  for (size_t i = 0; i < work_.used; ++i) {
    for (const Aim& aim : work_.lists[i].list.aims)
      work_.outside.add(world_, aim.packed, aim.before);
  }
  // What slices lead to takes no step before it.
  NodeTable sliced;
  list_sliced(p_.source, sliced);
  for (const SearchNode& n : sliced.nodes) work_.outside.add(world_, world_.pack(n.at), 0);
  work_.outside.settle(p_, world_, packed_target_, best_.ps,
                       options_.work_budget / 100 * outside_percent);
  for (SearchNode& n : table_.nodes) n.h = -1;
  for (size_t i = 0; i < work_.used; ++i) {
    AimList& list = work_.lists[i].list;
    for (AimKey& key : list.keys) {
      const Aim& aim = list.aims[key.aim];
      if (aim.at == p_.target) continue;
      p_.work += work::bound;
      key.left = rest_floor_ps(p_, world_, aim.at, aim.packed, packed_target_,
                               world_.bound_ps(aim.packed, packed_target_), least_latency_ps_ > 0,
                               work_.outside.left(world_, aim.packed));
    }
    sort_aims(list);
  }
}

void Search::raise_rests() {
  raise_after_ = INT64_MAX;
  if (!has_best_ || !options_.exchange || p_.kept != 0 || p_.target.made != 0 ||
      has_tables(*p_.topology))
    return;
  if (!world_.usable()) return raise_by_steps();
  if (options_.straight) return;
  if (states_listed_) return raise_by_steps();
  states_listed_ = true;
  // Where latencies do not grow with ranks, bounds lack little but the outer links.
  if (!p_.times.grow()) raise_outside();
  if (!list_every_aim()) return;
  int64_t states = 0;
  for (size_t i = 0; i < work_.used; ++i) states += std::ssize(work_.lists[i].list.keys);
  const int64_t all_floors = saturating_mul(states, states) * work::packed_floors;
  const bool has_outside = !p_.times.grow();
  const bool may_soon_end = p_.source.pending != 0 || has_outside;
  const int64_t share =
      all_floors / 100 * (may_soon_end ? floors_of_easier_percent : floors_percent);
  const int64_t worked = p_.work - work_before_;
  raise_after_ = has_outside ? saturating_add(worked, share) : std::max(worked, share);
}

void Search::raise_by_steps() {
  if (!list_useful_states()) return;
  LeftQuestion q;
  q.problem = &p_;
  q.world = world_.usable() ? &world_ : nullptr;
  q.most_ps = best_.ps;
  q.collective_latency_ps = least_latency_ps_;
  q.exchange_latency_ps = exchange_latency_ps_;
  const int64_t unused = options_.work_budget - (p_.work - work_before_);
  q.most_work = std::min(options_.work_budget / 100 * rests_percent, unused / 100 * unused_percent);
  const Raised raised = raise_left(q, work_.left);
  // Where dims or parts were left out, a plan by way of those may take less than one that is left.
  if (p_.shortcuts.none()) least_.ps = std::max(least_.ps, raised.least_ps - most_joining_ps(p_));
  take_way(raised.way);
  for (const LeftState& state : work_.left) {
    SearchNode& n = node(table_.intern(state.at));
    n.h = std::max(n.h, state.left);
  }
  size_t next = 0;
  for (size_t i = 0; i < work_.used; ++i) {
    AimList& list = work_.lists[i].list;
    for (AimKey& key : list.keys) key.left = work_.left[next++].left;
    sort_aims(list);
  }
}

}  // namespace meshplan
