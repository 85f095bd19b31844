// Better bounds on what is left, where a question turns out to be hard.
#include "cost/finer_tiers.h"
#include "search/search_run.h"

namespace meshplan {
namespace {

// Of the budget.
constexpr int64_t rests_percent = 30;

}  // namespace

bool Search::list_useful_states() {
  const uint16_t open = p_.source.pending;
  for (uint16_t q = open;; q = static_cast<uint16_t>((q - 1) & open)) {
    (void)aims(q, 0);
    if (p_.work - work_before_ > options_.work_budget / 2) return false;
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
  return true;
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
  q.most_work = options_.work_budget / 100 * rests_percent;
  raise_left(q, work_.left);
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
