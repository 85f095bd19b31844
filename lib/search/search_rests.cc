// Better bounds on what is left, where a question turns out to be hard.
#include "cost/finer_tiers.h"
#include "search/moves.h"
#include "search/search_run.h"

namespace meshplan {
namespace {

// Of the budget, and of what is left of it once the states are listed.
constexpr int64_t rests_percent = 70;
constexpr int64_t unused_percent = 90;

}  // namespace

bool Search::list_useful_states() {
  const int64_t before = p_.work;
  const uint16_t open = p_.source.pending;
  for (uint16_t q = open;; q = static_cast<uint16_t>((q - 1) & open)) {
    (void)aims(q, 0);
    if (p_.work - before > options_.work_budget / 2) return false;
    if (q == 0) break;
  }
  if (shortcuts_.has(Shortcut::few_aims)) return false;
  work_.left.clear();
  for (size_t i = 0; i < work_.used; ++i) {
    const AimList& list = work_.lists[i].list;
    for (const AimKey& key : list.keys) {
      const Aim& aim = list.aims[key.aim];
      work_.left.push_back({aim.at, aim.before, key.left});
    }
  }
  // What slices lead to takes no step before it.
  NodeTable seen;
  add_sliced(p_.source, seen);
  return true;
}

void Search::add_sliced(const SearchState& at, NodeTable& seen) {
  if (seen.find(at) >= 0) return;
  (void)seen.intern(at);
  p_.work += work::state;
  const int64_t left = rest(table_.intern(at));
  if (left > best_.ps) return;
  const auto is_same = [&](const LeftState& state) { return state.at == at; };
  if (std::none_of(work_.left.begin(), work_.left.end(), is_same))
    work_.left.push_back({at, 0, left});
  if (is_scalar(p_)) return;
  for (unsigned free = p_.all & ~at.pending & ~at.made & ~sharding(at, p_.dims); free != 0;
       free &= free - 1) {
    for (int d = 0; d < p_.dims; ++d) {
      SearchState next = at;
      append(next, p_.dims, d, static_cast<uint8_t>(__builtin_ctz(free)));
      if (!p_.only_even || cuts_evenly(p_, next)) add_sliced(next, seen);
    }
  }
}

void Search::take_way(const KnownWay& way) {
  int32_t from = source_;
  for (const KnownStep& step : way) {
    const SearchState at = node(from).at;
    const int32_t to = table_.intern(step.to);
    std::vector<Edge> edges;
    if (step.phases > 0) {
      edges.push_back(exchange_edge(p_, at, step.to, step.phases));
    } else {
      (void)collective_moves(p_, at, edges);
    }
    for (const Edge& edge : edges) {
      if (edge.to == step.to) relax(from, edge, to);
    }
    from = to;
  }
}

void Search::raise_rests() {
  rests_raised_ = true;
  if (world_.usable() || !has_best_ || !options_.exchange || p_.kept != 0 || p_.target.made != 0 ||
      has_tables(*p_.topology) || !list_useful_states())
    return;
  LeftQuestion q;
  q.problem = &p_;
  q.world = &world_;
  q.target = &packed_target_;
  q.most_ps = best_.ps;
  q.collective_latency_ps = least_latency_ps_;
  q.exchange_latency_ps = exchange_latency_ps_;
  q.two_phases = two_levels_;
  const int64_t unused = options_.work_budget - (p_.work - work_before_);
  q.most_work = std::min(options_.work_budget / 100 * rests_percent, unused / 100 * unused_percent);
  take_way(raise_left(q, work_.left));
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
