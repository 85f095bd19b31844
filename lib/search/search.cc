#include "search/search.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/aims.h"
#include "search/gather_last.h"
#include "search/last_step.h"
#include "search/moves.h"
#include "search/search_nodes.h"
#include "search/work.h"

namespace meshplan {
namespace {

// Spreads that one question may look at as aims of exchanges before the list is cut down to those near the ends.
constexpr int64_t most_aim_visits = 150'000;
constexpr int64_t most_slow_aim_visits = 20'000;  // where spreads do not pack
// How many times the budget a search may take that has no plan yet.
constexpr int64_t without_plan = 4;
// The share of the budget that one list of moves may take, and the one that a search for a plan
// without exchanges may.
constexpr int64_t list_percent = 25;
constexpr int64_t collectives_percent = 25;
// Of what lies between the time of the best plan and what is looked at: how far ahead exchanges are priced.
constexpr int64_t horizon_percent = 20;
// Plans that gather last are tried, so many, where lists of aims are long.
constexpr size_t most_gathers_last = 4;
constexpr int least_atoms_to_gather_last = 4;
// Of a search that most questions need no more of.
constexpr int64_t brief_budget = 4'000'000;

// What the searches of one thread share: storage only.
struct Workspace {
  NodeTable table;
  PackedWorld world;
  std::vector<OpenNode> open;
  std::vector<Hop> moves;
  std::vector<Hop> best;
  struct KnownAims {
    uint16_t pending;
    uint16_t made;
    AimList list;
  };
  std::vector<KnownAims> lists;  // the first `used` are of this question
  size_t used = 0;
  std::vector<FinerTarget> finer;
};
Workspace& workspace() {
  thread_local Workspace w;
  return w;
}

class Search {
 public:
  Search(const PlanProblem& p, const SearchOptions& options)
      : p_(p),
        options_(options),
        work_(workspace()),
        table_(work_.table),
        open_(work_.open),
        moves_(work_.moves),
        best_hops_(work_.best),
        world_(work_.world) {
    world_.reset(p);
    aim_visits_ = world_.usable() ? most_aim_visits : most_slow_aim_visits;
    packed_source_ = world_.pack(p.source);
    packed_target_ = world_.pack(p.target);
    table_.clear();
    open_.clear();
    best_hops_.clear();
    work_.used = 0;
  }

  Found run() {
    p_.estimated = false;
    work_before_ = p_.work;
    source_ = table_.intern(p_.source);
    goal_ = table_.intern(p_.target);
    if (source_ == goal_) return finish();
    two_levels_ = (p_.world.all() & ~p_.world.at_level(0)) != 0;
    if (!p_.exact_levels) two_levels_ = p_.topology->levels.size() > 1;
    least_latency_ps_ = INT64_MAX;
    for (const TopologyLevel& level : p_.topology->levels)
      least_latency_ps_ = std::min(least_latency_ps_, saturating_mul(level.latency_ns, 1000));
    if (!p_.levels_only) least_latency_ps_ = 0;
    exchange_latency_ps_ = p_.may_move_nothing ? 0 : least_latency_ps_;

    if (options_.below_ps != INT64_MAX) {
      has_best_ = true;
      wanted_ = false;
      best_ = {options_.below_ps - 1, INT64_MAX, INT64_MAX};
    }
    if (options_.known != nullptr && options_.known->exists) {
      has_best_ = wanted_ = true;
      best_ = options_.known->cost;
      best_hops_ = options_.known->hops;
    }
    node(source_).reached = true;
    if (world_.usable()) {
      least_ = {world_.bound_bytes(packed_source_, packed_target_), world_.bound_ps(packed_source_, packed_target_)};
    } else {
      least_ = bound_between(p_, p_.source, p_.target);
    }
    node(source_).bound = least_.ps;
    if (least_.ps == 0 && slice_to_target()) return finish();
    seed();
    push(source_);
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end(), OpensLater());
      OpenNode top = open_.back();
      open_.pop_back();
      SearchNode& n = node(top.node);
      if (n.closed && n.g < top.g) continue;
      if (top.g != n.g) continue;
      if (has_best_ && !better_than_best(top.f)) {
        open_.clear();
        break;
      }
      if (top.node == goal_) {
        accept_goal();
        continue;
      }
      frontier_ = top.f.ps;
      if (!n.closed) {
        n.closed = true;
        ++settled_;
      }
      p_.work += work::settle;
      if (stops()) break;
      expand(top.node);
      if (exhausted_) break;
    }
    return finish();
  }

 private:
  // Whether the work is used up. While there is no plan yet some more is spent on finding one.
  bool stops() {
    const bool first = !has_best_ && options_.exchange;
    const int64_t budget =
        first ? saturating_mul(options_.work_budget, without_plan) : options_.work_budget;
    if (p_.work - work_before_ > budget) exhausted_ = true;
    return exhausted_;
  }

  SearchNode& node(int32_t i) { return table_.nodes[static_cast<size_t>(i)]; }

  int64_t bound(int32_t i, const Packed& packed) {
    SearchNode& n = node(i);
    if (n.bound < 0) p_.work += work::bound;
    if (n.bound < 0) n.bound = i == goal_ ? 0 : world_.bound_ps(n.at, packed, p_.target, packed_target_);
    return n.bound;
  }
  int64_t rest(int32_t i) {
    SearchNode& n = node(i);
    if (n.h >= 0) return n.h;
    const Packed packed = world_.pack(n.at);
    n.h = rest_floor_ps(p_, world_, n.at, packed, packed_target_, bound(i, packed), least_latency_ps_);
    return n.h;
  }

  [[nodiscard]] bool ties_matter() const {
    if (best_hops_.empty() || best_hops_.front().op != Op::exchange) return false;
    for (const TopologyLevel& level : p_.topology->levels) {
      if (level.per_peer_ns == 0) return true;
    }
    return false;
  }

  // Whether a plan of cost `f` at least may still replace the best one. Whatever it does, it moves the bytes that the bound says.
  [[nodiscard]] bool better_than_best(PlanCost f) const {
    if (f.ps != best_.ps) return f.ps < best_.ps;
    f.wire_bytes = std::max(f.wire_bytes, least_.bytes);
    if (f != best_) return f < best_;
    return ties_matter();
  }
  // What a plan costs at least that goes through a spread: the cost until there and the bound on what is left.
  [[nodiscard]] static PlanCost through(PlanCost g, int64_t left) {
    g.ps = saturating_add(g.ps, left);
    if (left > 0) ++g.collectives;
    return g;
  }

  // Two communicating steps pay a second latency on top of what the bound counts: where that is too much, only one may still come.
  [[nodiscard]] bool last_step_only(int32_t i) {
    // What is made pending may be made of any shards: then more than one exchange may be the last
    // step.
    if (!has_best_ || ties_matter() || p_.kept != 0 || p_.target.made != 0) return false;
    const int64_t left = node(i).bound >= 0 ? node(i).bound : bound(i, world_.pack(node(i).at));
    return saturating_add(saturating_add(node(i).g.ps, left), exchange_latency_ps_) >= best_.ps;
  }

  void push(int32_t i) {
    SearchNode& n = node(i);
    const PlanCost f = through(node(i).g, rest(i));
    if (has_best_ && !better_than_best(f)) return;
    open_.push_back({f, i, n.g});
    std::push_heap(open_.begin(), open_.end(), OpensLater());
  }

  // The plan of slices alone, the atom of the lowest number first; false where there is none.
  bool slice_to_target() {
    if (!options_.collectives || p_.peak_limit != INT64_MAX || p_.target.made != p_.source.made ||
        p_.target.pending != p_.source.pending || !local_steps_lead_to_target(p_, p_.source))
      return false;
    has_best_ = wanted_ = true;
    best_ = {};
    best_hops_.clear();
    Hop hop;
    hop.to = p_.source;
    while (!(hop.to == p_.target)) {
      int slice_dim = 0;
      int atom = max_atoms;
      for (int d = 0; d < p_.dims; ++d) {
        const int k = hop.to.length(d);
        if (k == p_.target.length(d)) continue;
        const int next = p_.target.atom[as_index(p_.target.begin_of(d) + k)];
        if (next >= atom) continue;
        atom = next;
        slice_dim = d;
      }
      hop.group = static_cast<uint16_t>(1U << atom);
      append(hop.to, p_.dims, slice_dim, static_cast<uint8_t>(atom));
      best_hops_.push_back(hop);
    }
    return true;
  }

  // Plans known without search: one exchange, or one in two phases, then local steps.
  void seed() {
    if (!options_.exchange) return;
    Spread landing = p_.target;
    landing.made = 0;
    if (p_.source == landing || !may_hold(landing)) return;
    for (int phases : {1, 2}) {
      if (phases == 2 && (!two_levels_ || p_.source.pending != landing.pending || !members_share(p_, landing))) continue;
      if (phases == 2 && has_best_ && landing == p_.target && world_.usable() &&
          world_.exchange_floors(packed_source_, packed_target_).two_phases_ps > best_.ps)
        continue;
      Hop hop = exchange_hop(p_, p_.source, landing, phases, has_best_ ? best_.ps : INT64_MAX);
      // One exchange needs less memory than a plan of collectives that was found before and costs the same.
      const bool wins_tie = options_.known != nullptr && options_.known->exists && phases == 1 && hop.cost == best_;
      if (has_best_ && !(hop.cost < best_) && !wins_tie) continue;
      if (p_.peak_limit != INT64_MAX && peak_of(p_, p_.source, hop) > p_.peak_limit) continue;
      has_best_ = wanted_ = true;
      best_ = hop.cost;
      best_hops_.assign(1, hop);
      make_partials(landing, best_hops_);
    }
  }

  void make_partials(Spread at, std::vector<Hop>& hops) {
    for (int i = 0; i < p_.atoms; ++i) {
      if ((p_.target.made >> i & 1) == 0) continue;
      Hop hop;
      hop.op = Op::to_partial;
      hop.group = static_cast<uint16_t>(1U << i);
      at.made = static_cast<uint16_t>(at.made | hop.group);
      hop.to = at;
      hops.push_back(hop);
    }
  }

  void accept_goal() {
    const PlanCost cost = node(goal_).g;
    int32_t first = goal_;
    while (node(first).parent != source_) first = node(first).parent;
    if (has_best_ && !(cost < best_) && !(cost == best_ && !best_hops_.empty() && node(first).hop.op < best_hops_.front().op)) return;
    has_best_ = wanted_ = true;
    best_ = cost;
    best_hops_.clear();
    for (int32_t at = goal_; at != source_; at = node(at).parent) best_hops_.push_back(node(at).hop);
    std::reverse(best_hops_.begin(), best_hops_.end());
  }

  // The default memory rule: no state on the way larger than the larger end.
  bool may_hold(const Spread& s) {
    if (p_.state_limit == INT64_MAX) return true;
    return saturating_mul(box_elements(p_, s), p_.element) <= p_.state_limit;
  }
  bool may_hold(int32_t i) {
    if (p_.state_limit == INT64_MAX || i == goal_) return true;
    SearchNode& n = node(i);
    if (n.bytes < 0) n.bytes = saturating_mul(box_elements(p_, n.at), p_.element);
    return n.bytes <= p_.state_limit;
  }

  // A step that is priced only where it could take less time than the way there that is known.
  void relax_collective(int32_t from, const Spread& at, Hop& hop) {
    const int32_t to = table_.intern(hop.to);
    if (!is_local(hop.op)) {
      const int64_t soonest = saturating_add(node(from).g.ps, least_latency_ps_);
      const SearchNode& n = node(to);
      if (n.reached && n.g.ps < soonest) return;
      if (has_best_ && saturating_add(soonest, rest(to)) > best_.ps) return;
      if (hop.cost.collectives == 0) price_collective(p_, at, hop);
    }
    relax(from, hop, to);
  }

  // `to`: the node of hop.to.
  void relax(int32_t from, const Hop& hop, int32_t to) {
    PlanCost g = node(from).g;
    g.ps = saturating_add(g.ps, hop.cost.ps);
    g.collectives += hop.cost.collectives;
    g.wire_bytes = saturating_add(g.wire_bytes, hop.cost.wire_bytes);
    if (has_best_ && g.ps > best_.ps) return;
    if (!may_hold(to)) return;
    SearchNode& n = node(to);
    // Equal cost: the earlier op, then the smaller group. By a step that costs nothing a node would
    // become its own ancestor.
    const bool replaces = n.reached && g == n.g && node(from).g < g && to != source_ && !is_local(hop.op) &&
                          std::make_pair(hop.op, hop.group) < std::make_pair(n.hop.op, n.hop.group);
    if (n.reached && !(g < n.g) && !replaces) return;
    if (p_.peak_limit != INT64_MAX && peak_of(p_, Spread(node(from).at), hop) > p_.peak_limit) return;
    if (replaces) {
      n.hop = hop;
      n.parent = from;
      return;
    }
    n.reached = true;
    n.closed = false;
    n.looked_to = -1;
    n.g = g;
    n.parent = from;
    n.hop = hop;
    push(to);
    if (to == goal_ && (!has_best_ || g < best_)) accept_goal();
  }

  void expand(int32_t from) {
    if (!options_.collectives) return;
    const bool last_only = last_step_only(from);
    const Spread at = node(from).at;
    if (node(from).looked_to >= 0) {
      if (!last_only) {
        exchanges(from);
      } else if (from != source_) {
        exchange_to_target(from, at);
      }
      return;
    }
    // From the source the collectives that lead straight to the target come first: they often are as cheap as anything can be.
    if (from == source_ && !last_only && !collectives(from, at, true)) return;
    if (!collectives(from, at, last_only) || !options_.exchange) return;
    if (from == source_ && !last_only) try_gathers_last();
    if (!last_only) {
      exchanges(from);
    } else if (from != source_) {
      exchange_to_target(from, at);
    }
  }

  // False where no plan from here can beat the best one any more.
  bool collectives(int32_t from, const Spread& at, bool last_only) {
    moves_.clear();
    MoveLimits limits;
    limits.last_only = last_only;
    if (has_best_) limits.most_ps = best_.ps - node(from).g.ps;
    limits.least_latency_ps = least_latency_ps_;
    limits.world = &world_;
    limits.target = &packed_target_;
    limits.most_work = options_.work_budget / 100 * list_percent;
    if (!list_collectives(p_, at, moves_, limits)) {
      cut_short_ = true;
      shortcuts_.add(Shortcut::work_budget);
    }
    for (Hop& hop : moves_) {
      relax_collective(from, at, hop);
      if (stops()) return false;
    }
    return !has_best_ || better_than_best(through(node(from).g, rest(from)));
  }

  void try_gathers_last() {
    const auto reduced = static_cast<uint16_t>(p_.source.pending & ~p_.target.pending);
    if (p_.atoms < least_atoms_to_gather_last || !has_best_ || !world_.usable()) return;
    if (p_.target.made != 0 || p_.kept != 0 || !may_reduce(p_, p_.source, reduced)) return;
    finer_targets(p_, world_, packed_source_, best_.ps, most_gathers_last, work_.finer);
    for (const FinerTarget& finer : work_.finer) {
      if (finer.least_ps >= best_.ps) break;
      const Hop hop = exchange_hop(p_, p_.source, finer.at, 1, best_.ps);
      if (hop.cost.ps >= best_.ps) continue;
      const int32_t to = table_.intern(finer.at);
      relax(source_, hop, to);
      if (node(to).reached && node(to).parent == source_) collectives(to, finer.at, true);
    }
  }

  void exchange_to_target(int32_t from, const Spread& at) {
    Spread landing = p_.target;
    landing.made = at.made;
    if (at == landing || (at.pending & landing.pending) != landing.pending) return;
    exchange_to(from, at, world_.pack(at), landing, world_.pack(landing), -1);
  }

  // One exchange, in one phase and in two, where it may still lead to a better plan. `left`: the bound from there, -1 where not known.
  // `soonest`: the time until there at least. `reached`: the time in which a plan reaches it already, or more.
  void exchange_to(int32_t from, const Spread& at, const Packed& packed, const Spread& to, const Packed& packed_to, int64_t left,
                   int64_t soonest = 0, int64_t reached = INT64_MAX) {
    const int64_t gone = node(from).g.ps;
    const int64_t spent = saturating_add(gone, std::max<int64_t>(left, 0));
    const bool alike = at.pending == to.pending;
    PackedWorld::ExchangeFloors floors;
    p_.work += work::floors;
    if (has_best_ && world_.usable()) floors = world_.exchange_floors(packed, packed_to);
    for (int phases : {1, 2}) {
      if (phases == 2 && (!two_levels_ || !alike || !members_share(p_, to))) continue;
      if (has_best_ && world_.usable()) {
        PlanCost least = node(from).g;
        least.ps = std::max(soonest, saturating_add(gone, phases == 1 ? floors.one_phase_ps : floors.two_phases_ps));
        least.collectives += phases;
        if (least.ps > reached || !better_than_best(through(least, std::max<int64_t>(left, 0)))) continue;
        if (left >= 0 && not_now(saturating_add(least.ps, left))) continue;
      }
      const int64_t most_ps = has_best_ ? best_.ps - spent : INT64_MAX;
      const Hop hop = exchange_hop(p_, at, to, phases, most_ps);
      if (has_best_ && saturating_add(spent, hop.cost.ps) > best_.ps) continue;
      const int32_t reached_node = table_.intern(to);
      if (left >= 0) node(reached_node).h = left;
      relax(from, hop, reached_node);
    }
  }

  // What an exchange may aim at with these atoms pending and made.
  AimList& aims(uint16_t pending, uint16_t made) {
    for (size_t i = 0; i < work_.used; ++i) {
      if (work_.lists[i].pending == pending && work_.lists[i].made == made) return work_.lists[i].list;
    }
    if (work_.used == work_.lists.size()) work_.lists.emplace_back();
    Workspace::KnownAims& known = work_.lists[work_.used++];
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
    q.least_latency_ps = exchange_latency_ps_;
    const int64_t visits = aim_visits_;
    if (!list_aims(q, aim_visits_, known.list)) shortcuts_.add(Shortcut::few_aims);
    p_.work += (visits - aim_visits_) * work::aim;
    return known.list;
  }

  // Those by which a plan may take little more than what is looked at now. The node comes up again for the others, if no plan is found
  // before that takes less than they do.
  void exchanges(int32_t from) {
    const Spread at = node(from).at;
    const PlanCost g = node(from).g;
    const Packed packed = world_.pack(at);
    const uint16_t open = at.pending;
    looked_to_ = node(from).looked_to;
    look_to_ = has_best_ ? saturating_add(frontier_, (best_.ps - frontier_) / 100 * horizon_percent) : INT64_MAX;
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
  // Whether a plan that takes so long at least is for later, or was looked at before.
  bool not_now(int64_t least_ps) {
    if (least_ps > look_to_) {
      next_look_ = std::min(next_look_, least_ps);
      return true;
    }
    return least_ps <= looked_to_;
  }
  void exchanges_reducing(int32_t from, const Spread& at, const Packed& packed, uint16_t q) {
    const auto pending = static_cast<uint16_t>(at.pending & ~q);
    const PlanCost g = node(from).g;
    AimList& list = aims(pending, at.made);
    const int64_t soonest = saturating_add(g.ps, exchange_latency_ps_);
    for (const AimGroup& group : list.groups) {
      const AimKey& nearest = list.keys[group.begin];
      if (has_best_ && saturating_add(soonest, nearest.left) > best_.ps) break;
      if (saturating_add(soonest, nearest.left) > look_to_) {
        next_look_ = std::min(next_look_, saturating_add(soonest, nearest.left));
        break;
      }
      int64_t outer = soonest;
      if (world_.usable()) {
        const Packed& first = list.aims[nearest.aim].packed;
        outer = std::max(outer, saturating_add(g.ps, std::max(world_.outer_bound_ps(packed, first),
                                                              world_.reordered_ps(packed, first))));
      }
      for (uint32_t k = group.begin; k < group.end; ++k) {
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
        if (has_best_ && least == best_.ps && g.collectives + 1 + (key.left > 0) > best_.collectives) continue;
        const Aim& aim = list.aims[key.aim];
        if (aim.at == at) continue;
        if (!world_.usable()) {
          const int64_t here = saturating_add(g.ps, from == source_ ? aim.before : bound_between(p_, at, aim.at).ps);
          const int64_t through_aim = saturating_add(here, key.left);
          if (key.reached < here || (has_best_ && through_aim > best_.ps) || not_now(through_aim)) continue;
        }
        exchange_to(from, at, packed, aim.at, aim.packed, key.left, outer, key.reached);
        if (const int32_t to = table_.find(aim.at); to >= 0 && node(to).reached) key.reached = node(to).g.ps;
      }
    }
  }

  Found finish() {
    Found found;
    found.exists = (has_best_ && wanted_) || source_ == goal_;
    if (has_best_) found.hops.assign(best_hops_.begin(), best_hops_.end());
    found.cost = best_;
    found.settled = settled_;
    found.work = p_.work - work_before_;
    found.shortcuts = shortcuts_;
    found.shortcuts.add(p_.shortcuts);
    if (exhausted_) found.shortcuts.add(Shortcut::work_budget);
    if (p_.estimated) found.shortcuts.add(Shortcut::estimated_price);
    found.least_ps = least_.ps;
    if (found.shortcuts.none()) {
      found.least_ps = best_.ps;
    } else if (exhausted_ && only(found.shortcuts, Shortcut::work_budget) && !cut_short_) {
      // All that was left out goes on from a state that was still to be taken up.
      found.least_ps = std::max(found.least_ps, std::min(frontier_, best_.ps));
    }
    return found;
  }

  static bool only(Shortcuts shortcuts, Shortcut one) {
    Shortcuts alone;
    alone.add(one);
    return shortcuts == alone;
  }

  const PlanProblem& p_;
  const SearchOptions& options_;
  Workspace& work_;
  NodeTable& table_;
  std::vector<OpenNode>& open_;
  std::vector<Hop>& moves_;
  std::vector<Hop>& best_hops_;
  PackedWorld& world_;
  Packed packed_source_;
  Packed packed_target_;
  int64_t aim_visits_ = 0;
  int32_t source_ = 0;
  int32_t goal_ = 0;
  Bounds least_;  // of any plan
  bool has_best_ = false;
  bool wanted_ = true;  // false while best_ is only the time to stay below
  PlanCost best_;
  bool two_levels_ = false;
  Shortcuts shortcuts_;
  bool cut_short_ = false;  // a list of moves
  bool exhausted_ = false;
  int64_t work_before_ = 0;
  int64_t frontier_ = 0;
  // Exchanges of the node at hand: a plan by those looked at now takes more than looked_to_ and up to look_to_ at least, by the others at
  // least next_look_. ps.
  int64_t looked_to_ = -1;
  int64_t look_to_ = INT64_MAX;
  int64_t next_look_ = INT64_MAX;
  int64_t least_latency_ps_ = 0;     // of a collective
  int64_t exchange_latency_ps_ = 0;  // of an exchange
  int64_t settled_ = 0;
};

}  // namespace

Found find_cheapest(const PlanProblem& problem, const SearchOptions& options) {
  if (!options.exchange || !options.collectives) return Search(problem, options).run();
  // Where closed forms price most exchanges, a short search answers nearly every question.
  Found known;
  int64_t work = 0;
  if (problem.even && problem.always_line_up && !has_finer_tiers(*problem.topology)) {
    SearchOptions brief = options;
    brief.work_budget = std::min(options.work_budget, brief_budget);
    known = Search(problem, brief).run();
    if (!known.shortcuts.has(Shortcut::work_budget)) return known;
    work = known.work;
  }
  // Else a plan of collectives alone, which is found for little, bounds the search first.
  SearchOptions first = options;
  first.exchange = false;
  first.known = &known;
  first.work_budget = std::max<int64_t>(0, options.work_budget / 100 * collectives_percent - work);
  const Found bounded = Search(problem, first).run();
  work += bounded.work;
  SearchOptions all = options;
  all.known = &bounded;
  all.work_budget = std::max<int64_t>(0, options.work_budget - work);
  Found found = Search(problem, all).run();
  found.least_ps = std::max(found.least_ps, known.least_ps);
  found.work += work;
  return found;
}

}  // namespace meshplan
