#include "search/least_left.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/int_math.h"
#include "search/exchange_floor.h"
#include "search/known_exchanges.h"
#include "search/moves.h"
#include "search/search_nodes.h"
#include "search/work.h"

namespace meshplan {
namespace {

// Of more nothing is said: an exchange between any two of them would be looked at.
constexpr size_t most_known_states = 8'192;
// The share of the work that is kept to make a plan of what is known when the rest is used up.
constexpr int64_t closing_percent = 8;

class Ways {
 public:
  Ways(const LeftQuestion& question, std::vector<LeftState>& states)
      : q_(question),
        p_(*question.problem),
        states_(states),
        work_before_(p_.work),
        most_ps_(question.most_ps),
        known_(question.problem->known_exchanges) {}

  Raised run() {
    raise_all();
    return {std::move(plan_), least_ps()};
  }

 private:
  void raise_all() {
    if (states_.size() > most_known_states || !find_ends() || !list_moves()) return;
    exchanges_.assign(states_.size(), nullptr);
    ways_.assign(states_.size(), {});
    open_.assign(states_.size(), too_long);
    was_settled_.assign(states_.size(), false);
    set_way(target_, {0});
    const int64_t kept = q_.most_work / 100 * closing_percent;
    for (size_t next = nearest(); next < states_.size(); next = nearest()) {
      if (least_by(next) > most_ps_) break;
      if (work_left() < kept) return close();
      if (q_.world != nullptr && price_first(next)) continue;
      if (next != source_) {
        settle(next);
      } else if (!try_way() && !look_closer()) {
        ways_[source_].settled = true;
        open_[source_] = too_long;
      }
    }
    raise();
  }

  // Prices the best way that is known from the source, and again where that changes which it is.
  void close() {
    while (work_left() > 0 && ways_[source_].left < most_ps_ && price_way()) {
    }
    raise_early();
  }

  struct Way {
    int64_t left = too_long;  // by the best way known
    bool settled = false;     // what leads to it was offered this way
    bool by_exchange = false;
    size_t next = 0;  // where it leads first
    int64_t ps = 0;   // of the step there
  };
  // The number of a state, and of one of the moves from it.
  struct Move {
    uint32_t from = 0;
    uint32_t number = 0;
  };
  [[nodiscard]] int64_t work_left() const { return q_.most_work - (p_.work - work_before_); }
  // From so much on, what is left is too much.
  [[nodiscard]] int64_t most_left(size_t i) const { return most_ps_ - states_[i].before + 1; }

  // Numbers the states; false where source or target is not among them.
  bool find_ends() {
    for (const LeftState& state : states_) {
      (void)numbers_.intern(state.at);
      known_as_.push_back(known_.number(state.at));
      if (q_.world != nullptr) {
        packed_.push_back(q_.world->pack(state.at));
      } else {
        lists_.push_back(p_.sides.lists(p_, state.at));
        largest_.push_back(box_elements(p_, state.at));
      }
    }
    const int32_t source = numbers_.find(p_.source);
    const int32_t target = numbers_.find(p_.target);
    if (source < 0 || target < 0) return false;
    source_ = as_index(source);
    target_ = as_index(target);
    return true;
  }

  // Collectives and slices; false where that takes too much. Those that lead to no useful state are
  // left out when they are listed: to ask for bounds on the way takes longer.
  bool list_moves() {
    leading_to_.resize(states_.size());
    leading_on_.resize(states_.size());
    MoveLimits limits;
    limits.least_latency_ps = q_.collective_latency_ps;
    moves_.resize(states_.size());
    std::vector<Edge> edges;
    std::vector<Edge> kept;
    for (size_t i = 0; i < states_.size(); ++i) {
      edges.clear();
      limits.most_ps = most_left(i) - 1;
      limits.most_work = work_left();
      if (limits.most_work <= 0 || !list_collectives(p_, states_[i].at, edges, limits))
        return false;
      kept.clear();
      for (const Edge& edge : edges) {
        const int32_t to = numbers_.find(edge.to);
        if (to < 0) continue;
        leading_to_[as_index(to)].push_back(
            {static_cast<uint32_t>(i), static_cast<uint32_t>(kept.size())});
        leading_on_[i].push_back(static_cast<uint32_t>(to));
        kept.push_back(edge);
      }
      moves_[i].assign(kept.begin(), kept.end());  // no more room than they take
    }
    return true;
  }

  // What a plan by way of a state takes at least, by the best way known from there.
  [[nodiscard]] int64_t least_by(size_t i) const { return states_[i].before + ways_[i].left; }

  // By that, of those not settled; the number of states where nothing leads on from the rest.
  [[nodiscard]] size_t nearest() const {
    p_.work += static_cast<int64_t>(states_.size()) / 8;
    int64_t least = too_long;
    for (const int64_t ps : open_) least = std::min(least, ps);
    if (least == too_long) return states_.size();
    return static_cast<size_t>(std::find(open_.begin(), open_.end(), least) - open_.begin());
  }
  void set_way(size_t i, const Way& way) {
    ways_[i] = way;
    open_[i] = std::min(least_by(i), too_long);
  }

  void settle(size_t to) {
    ways_[to].settled = was_settled_[to] = true;
    open_[to] = too_long;
    const auto farther =
        std::upper_bound(settled_.begin(), settled_.end(), ways_[to].left,
                         [&](int64_t left, size_t other) { return left < ways_[other].left; });
    settled_.insert(farther, to);
    if (exchanges_[to] == nullptr)
      exchanges_[to] = known_.to(p_, known_as_[to], q_.exchange_latency_ps);
    for (const Move& move : leading_to_[to])
      offer_move(move.from, to, moves_[move.from][move.number]);
    for (size_t i = 0; i < states_.size(); ++i) {
      if (i != to) offer_exchange(i, to);
    }
  }
  LeastExchange& exchange(size_t from, size_t to) { return exchanges_[to][known_as_[from]]; }

  // No less than what is known to be left. What is before states may say less of one than of those
  // that lead to it: one that is settled may come to have a better way.
  void offer(size_t i, size_t to, int64_t ps, bool by_exchange) {
    const int64_t left = std::max(saturating_add(ps, ways_[to].left), states_[i].left);
    if (left >= ways_[i].left || left >= most_left(i)) return;
    if (ways_[i].settled) std::erase(settled_, i);
    set_way(i, {left, false, by_exchange, to, ps});
  }
  // Priced where it may be of use.
  void offer_move(size_t i, size_t to, Edge& edge) {
    const bool unpriced = !is_local(edge.op) && edge.cost.collectives == 0;
    const int64_t least_ps = unpriced ? q_.collective_latency_ps : edge.cost.ps;
    const int64_t most = std::min(ways_[i].left, most_left(i));
    if (saturating_add(least_ps, ways_[to].left) >= most) return;
    if (unpriced) price_collective(p_, states_[i].at, edge);
    offer(i, to, edge.cost.ps, false);
  }
  void offer_exchange(size_t i, size_t to) {
    if (ways_[i].left <= states_[i].left) return;
    // What it may take.
    const int64_t most = std::min(ways_[i].left, most_left(i)) - ways_[to].left;
    const LeastExchange& least = exchange(i, to);
    while (least.ps() < most && least.known() < Known::floors) refine(i, to, most);
    if (least.ps() < most) offer(i, to, least.ps(), true);
  }

  // At the first, the second, the fourth time and so on prices the way from the source.
  bool try_way() {
    ++looks_;
    return (looks_ & (looks_ - 1)) == 0 && price_way();
  }

  // Prices every exchange on the way from the source: a plan, where it takes less than the best one
  // known. Whether something was learnt.
  bool price_way() {
    int64_t all = 0;
    for (size_t i = source_; i != target_; i = ways_[i].next) all += ways_[i].ps;
    std::vector<size_t> raised;
    KnownWay way;
    bool is_plan = true;
    for (size_t i = source_; i != target_ && all < most_ps_; i = ways_[i].next) {
      const size_t to = ways_[i].next;
      way.push_back({states_[to].at, std::nullopt});
      if (!ways_[i].by_exchange) continue;
      const LeastExchange& least = exchange(i, to);
      while (least.known() < Known::price && all < most_ps_ && work_left() > 0) {
        refine(i, to, most_left(i) - ways_[to].left);
        all += least.ps() - ways_[i].ps;
        ways_[i].ps = least.ps();
        if (raised.empty() || raised.back() != i) raised.push_back(i);
      }
      const LeastOfWays& each = by_way(i, to);
      is_plan = is_plan && each.exact[each.sooner()];
      way.back().way = exchange_ways[each.sooner()];
    }
    if (all < most_ps_ && is_plan && fits(way)) {
      most_ps_ = all;
      plan_ = std::move(way);
    }
    if (raised.empty()) return false;
    lose(raised);
    return true;
  }

  // Whether each step of the way from the source, as it is priced, keeps to the limit of peaks.
  [[nodiscard]] bool fits(const KnownWay& way) const {
    if (p_.peak_limit == INT64_MAX) return true;
    size_t from = source_;
    for (const KnownStep& step : way) {
      const SearchState& at = states_[from].at;
      const Way& known = ways_[from];
      const auto keeps = [&](const Edge& edge) { return peak_of(p_, at, edge) <= p_.peak_limit; };
      const bool fit =
          step.way ? keeps(exchange_edge(p_, at, step.to, *step.way))
                   : std::any_of(moves_[from].begin(), moves_[from].end(), [&](const Edge& edge) {
                       return edge.to == step.to && edge.cost.ps == known.ps && keeps(edge);
                     });
      if (!fit) return false;
      from = known.next;
    }
    return true;
  }

  // Comes to know more of what takes longest of the exchanges on the way from the source that are
  // not priced yet: its close floor, then its price. False where there is none.
  bool look_closer() {
    size_t longest = states_.size();
    int64_t most = -1;
    for (size_t i = source_; i != target_; i = ways_[i].next) {
      if (!ways_[i].by_exchange) continue;
      const LeastExchange& least = exchange(i, ways_[i].next);
      if (least.known() == Known::price || least.ps() <= most) continue;
      most = least.ps();
      longest = i;
    }
    if (longest == states_.size()) return false;
    const size_t to = ways_[longest].next;
    refine(longest, to, most_left(longest) - ways_[to].left);
    if (exchange(longest, to).ps() > most) lose({longest});
    return true;
  }

  // The ways from some states take longer than was known: all that lead by them are found again.
  void lose(const std::vector<size_t>& firsts) {
    enum Mark : uint8_t { unknown, lost, stays };
    std::vector<Mark> marks(states_.size(), unknown);
    for (const size_t first : firsts) marks[first] = lost;
    marks[target_] = stays;
    std::vector<size_t> passed;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (ways_[i].left == too_long) continue;
      passed.clear();
      size_t at = i;
      for (; marks[at] == unknown; at = ways_[at].next) passed.push_back(at);
      for (const size_t state : passed) marks[state] = marks[at];
    }
    std::erase_if(settled_, [&](size_t state) { return marks[state] == lost; });
    for (size_t i = 0; i < states_.size(); ++i) {
      if (marks[i] == lost) set_way(i, {});
    }
    for (size_t i = 0; i < states_.size(); ++i) {
      if (marks[i] == lost) find_again(i);
    }
  }

  // The best way from a state by way of those that are settled.
  void find_again(size_t i) {
    set_way(i, {});
    for (size_t k = 0; k < leading_on_[i].size(); ++k) {
      const size_t to = leading_on_[i][k];
      if (ways_[to].settled) offer_move(i, to, moves_[i][k]);
    }
    size_t looked = 0;
    for (; looked < settled_.size(); ++looked) {
      const size_t to = settled_[looked];
      if (ways_[to].left + q_.exchange_latency_ps >= std::min(ways_[i].left, most_left(i))) break;
      offer_exchange(i, to);
    }
    p_.work += static_cast<int64_t>(looked) / 2;
  }

  // Where prices are closed forms, the step that a way begins with is priced before its state is
  // settled: whether it takes longer. Others lead by a state only where it was settled before.
  bool price_first(size_t i) {
    const Way way = ways_[i];
    if (!way.by_exchange) return false;
    const LeastExchange& least = exchange(i, way.next);
    while (least.known() < Known::price && least.ps() == way.ps)
      refine(i, way.next, most_left(i) - ways_[way.next].left);
    if (least.ps() == way.ps) return false;
    was_settled_[i] ? lose({i}) : find_again(i);
    return true;
  }

  // Comes to know one thing more of an exchange. `most`: that it may take.
  void refine(size_t i, size_t to, int64_t most) {
    if (q_.world != nullptr) return refine_packed(i, to, most);
    const SearchState& from = states_[i].at;
    const SearchState& aim = states_[to].at;
    LeastExchange& least = exchange(i, to);
    const int64_t ps = least.ps();
    const Known known = least.known();
    if (known != Known::latency) {
      p_.sides.recall(lists_[to]);
      p_.sides.recall(lists_[i]);
    }
    switch (known) {
      case Known::latency:
        // By levels peers cost little beside what the bound says.
        least = {std::max(ps, p_.times.grow() ? few_peers_ps(i, to, most) : larger_box_ps(i, to)),
                 Known::peers};
        return;
      case Known::peers:
        least = {std::max(ps, bound_between(p_, from, aim, false, most).ps), Known::bound};
        break;
      case Known::bound:
        least = floor_each(i, to, ps, most);
        break;
      case Known::floors:
        least = floor_closely(i, to, most).least();
        break;
      case Known::close_floors:
        least = price_sooner(i, to, most).least();
        return;
      case Known::price:
        return;
    }
    // Above `most` not all of it was looked at: it is asked again where more may be taken.
    if (least.ps() > most) least = {least.ps(), known};
  }
  // Where states pack all floors are known at once; each way has its own only where they decide.
  void refine_packed(size_t i, size_t to, int64_t most) {
    const SearchState& from = states_[i].at;
    const SearchState& aim = states_[to].at;
    LeastExchange& least = exchange(i, to);
    if (least.known() == Known::close_floors) {
      least = price_sooner(i, to, most).least();
      return;
    }
    p_.work += work::packed_floors;
    const ExchangeFloors floors = q_.world->exchange_floors(packed_[i], packed_[to]);
    if (least.known() < Known::floors) {
      least = {floors.least_ps(from.pending != aim.pending), Known::floors};
      return;
    }
    LeastOfWays& each = by_way(i, to);
    for (size_t k = 0; k < LeastOfWays::ways; ++k) {
      if (!may_go(p_, from, aim, exchange_ways[k])) continue;
      each.ps[k] = std::min(floors.of(exchange_ways[k]), too_long);
      each.priced[k] = each.ps[k] == too_long;
    }
    each.close = true;
    least = each.least();
  }
  [[nodiscard]] int64_t few_peers_ps(size_t i, size_t to, int64_t most) const {
    const SearchState& from = states_[i].at;
    const SearchState& aim = states_[to].at;
    if (!p_.sides.knows(lists_[i]) || !p_.sides.knows(lists_[to]))
      return few_peers_floor_ps(p_, from, aim, most);
    return few_peers_floor_ps(p_, from, aim, lists_[i], lists_[to], most);
  }
  // By what the first rank misses, which has the largest box before and after: told soonest, no
  // more than the bound.
  [[nodiscard]] int64_t larger_box_ps(size_t i, size_t to) const {
    const SearchState& from = states_[i].at;
    const SearchState& aim = states_[to].at;
    const int64_t missing = largest_[to] - (from.pending != aim.pending ? 0 : largest_[i]);
    if (missing <= 0) return 0;
    const int64_t bytes = saturating_mul(missing, wire_element(p_, from, aim));
    const uint32_t every_level = (1U << p_.topology->levels.size()) - 1;
    return p_.times.ps({2, 0, false, false}, bytes, 1, every_level);
  }
  LeastOfWays& by_way(size_t i, size_t to) { return known_.by_way(known_as_[i], known_as_[to]); }
  // What is above `most` is told anew where it is asked for again, and kept only where all may
  // fetch: whether that is offered is not always looked at.
  LeastExchange floor_each(size_t i, size_t to, int64_t least_ps, int64_t most) {
    const WayFloors floors = exchange_floors_ps(p_, states_[i].at, states_[to].at, most);
    const int64_t least = std::max(least_ps, *std::min_element(floors.begin(), floors.end()));
    if (least > most && !may_go(p_, states_[i].at, states_[to].at, ExchangeWay::by_all))
      return {least, Known::floors};
    LeastOfWays& each = by_way(i, to);
    for (size_t k = 0; k < LeastOfWays::ways; ++k) {
      if (floors[k] == INT64_MAX) continue;
      each.ps[k] = std::min(std::max(least_ps, floors[k]), too_long);
      each.priced[k] = false;
    }
    return each.least();
  }
  const LeastOfWays& floor_closely(size_t i, size_t to, int64_t most) {
    LeastOfWays& each = by_way(i, to);
    for (size_t k = 0; k < LeastOfWays::ways; ++k) {
      if (each.priced[k]) continue;
      const int64_t floor =
          close_exchange_floor_ps(p_, states_[i].at, states_[to].at, exchange_ways[k], most);
      each.ps[k] = std::min(std::max(each.ps[k], floor), too_long);
    }
    each.close = true;
    return each;
  }
  // Where that takes too much to list, its floor stays.
  const LeastOfWays& price_sooner(size_t i, size_t to, int64_t most) {
    LeastOfWays& each = by_way(i, to);
    const size_t k = each.sooner();
    const bool before = std::exchange(p_.estimated, false);
    const Edge edge = exchange_edge(p_, states_[i].at, states_[to].at, exchange_ways[k],
                                    std::min(most, each.ps[k]));
    if (!p_.estimated) each.ps[k] = std::min(std::max(each.ps[k], edge.cost.ps), too_long);
    each.exact[k] = !p_.estimated && !edge.at_least;
    each.priced[k] = !edge.at_least;
    p_.estimated = before;
    return each;
  }

  // A plan that takes less than the source's way is to be had goes by a state that is not settled,
  // from which the rest of its way is known: what is before that state and what is left from it.
  [[nodiscard]] int64_t least_ps() const {
    if (ways_.empty()) return 0;
    int64_t least = std::min(most_ps_, ways_[source_].left);
    for (size_t i = 0; i < states_.size(); ++i) {
      if (!ways_[i].settled) least = std::min(least, least_by(i));
    }
    return least;
  }
  // Each state of a plan of use is settled, with no more left than in that plan: the last one where
  // that is not so would have been offered the plan's way by the one behind it, or that one is
  // still to be settled though a plan by way of it takes no more than most_ps_.
  void raise() {
    for (size_t i = 0; i < states_.size(); ++i)
      raise(i, ways_[i].settled ? ways_[i].left : most_left(i));
  }
  // Where such states are still to be settled any better way leads by one of them.
  void raise_early() {
    int64_t least = too_long;
    for (const Way& way : ways_) {
      if (!way.settled) least = std::min(least, way.left);
    }
    for (size_t i = 0; i < states_.size(); ++i)
      raise(i, ways_[i].settled ? std::min(ways_[i].left, least) : least);
  }
  void raise(size_t i, int64_t left) {
    states_[i].left = std::max(states_[i].left, std::min(left, most_left(i)));
  }

  const LeftQuestion& q_;
  const PlanProblem& p_;
  std::vector<LeftState>& states_;
  int64_t work_before_;
  int64_t most_ps_;    // of a plan that is of any use
  int64_t looks_ = 0;  // at ways from the source
  KnownWay plan_;      // that takes most_ps_, where one was found
  NodeTable numbers_;
  size_t source_ = 0;
  size_t target_ = 0;
  std::vector<std::vector<Edge>> moves_;           // from each state
  std::vector<std::vector<uint32_t>> leading_on_;  // where they lead
  std::vector<std::vector<Move>> leading_to_;      // by where they lead
  KnownExchanges& known_;
  std::vector<uint32_t> known_as_;         // the number of each state there
  std::vector<RankSides::Lists> lists_;    // of each state, where they do not pack
  std::vector<int64_t> largest_;           // box of each of these, elements
  std::vector<Packed> packed_;             // where they do
  std::vector<LeastExchange*> exchanges_;  // by where they lead; nullptr: not asked yet
  std::vector<Way> ways_;
  std::vector<int64_t> open_;  // least_by of what is not settled; too_long: it is
  std::vector<bool> was_settled_;
  std::vector<size_t> settled_;  // nearest first
};

}  // namespace

Raised raise_left(const LeftQuestion& question, std::vector<LeftState>& states) {
  return Ways(question, states).run();
}

}  // namespace meshplan
