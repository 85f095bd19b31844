#include "search/least_left.h"

#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "search/end_ways.h"
#include "search/moves.h"
#include "search/search_nodes.h"
#include "search/work.h"

namespace meshplan {
namespace {

// Of more nothing is said: an exchange between any two of them would be looked at.
constexpr size_t most_known_states = 8'192;
// The share of the work that is kept to make a plan of what is known when the rest is used up.
constexpr int64_t closing_percent = 8;

// The numbers of source and target among the states.
struct Ends {
  size_t source = 0;
  size_t target = 0;
};

class WaysBetween {
 public:
  WaysBetween(const LeftQuestion& question, std::vector<LeftState>& states, const Ends& ends,
              StateMoves& moves)
      : q_(question),
        p_(*question.problem),
        states_(states),
        ends_(ends),
        work_before_(p_.work),
        exchanges_(question, states, moves),
        steps_{question, states, moves, exchanges_, std::min(question.most_ps, too_long - 1)},
        from_source_(steps_, EndWays::End::source, ends.source),
        to_target_(steps_, EndWays::End::target, ends.target) {
    from_source_.set_other(to_target_);
    to_target_.set_other(from_source_);
  }

  Raised run() {
    settle_all();
    const int64_t least = least_ps();
    raise(least);
    return {std::move(plan_), least};
  }

 private:
  [[nodiscard]] int64_t work_left() const { return q_.most_work - (p_.work - work_before_); }

  // From both ends, until one of them has nothing left by which a plan of use may go, and what is
  // left from each state is known.
  void settle_all() {
    const int64_t kept = q_.most_work / 100 * closing_percent;
    bool all_known = false;  // of the cheapest way
    bool source_is_done = false;
    while (true) {
      if (steps_.was_lost) find_meeting();
      const bool beyond = all_known || steps_.shortest_ps > steps_.most_ps;
      const int64_t most = beyond ? steps_.most_ps : steps_.shortest_ps - 1;
      if (work_left() < kept) return close();
      // Both ends take as much work.
      const bool from_source =
          !source_is_done && from_source_.work_with_next() <= to_target_.work_with_next();
      if ((from_source ? from_source_ : to_target_).go_on(most)) continue;
      if (beyond && !from_source) return;
      if (beyond) {
        source_is_done = true;
        continue;
      }
      all_known = !try_way() && !look_closer();
    }
  }

  // The cheapest way that is known, and where the ways from both ends meet on it.
  void find_meeting() {
    p_.work += std::ssize(states_) / 8;
    steps_.shortest_ps = too_long;
    steps_.was_lost = false;
    for (size_t i = 0; i < states_.size(); ++i) {
      const int64_t ps = from_source_.way(i).ps + to_target_.way(i).ps;
      if (ps >= steps_.shortest_ps) continue;
      steps_.shortest_ps = ps;
      steps_.meeting = i;
    }
  }

  // A step of the cheapest way.
  struct Step {
    size_t from = 0;
    size_t to = 0;
    bool by_exchange = false;
    int64_t ps = 0;
  };
  [[nodiscard]] std::vector<Step> steps_of_way() const {
    std::vector<Step> steps;
    for (size_t i = steps_.meeting; i != ends_.source; i = from_source_.way(i).next) {
      const EndWays::Way& way = from_source_.way(i);
      steps.push_back({way.next, i, way.by_exchange, way.step_ps});
    }
    std::reverse(steps.begin(), steps.end());
    for (size_t i = steps_.meeting; i != ends_.target; i = to_target_.way(i).next) {
      const EndWays::Way& way = to_target_.way(i);
      steps.push_back({i, way.next, way.by_exchange, way.step_ps});
    }
    return steps;
  }

  // At the first, the second, the fourth time and so on prices the cheapest way.
  bool try_way() {
    ++looks_;
    return (looks_ & (looks_ - 1)) == 0 && price_way();
  }

  // Prices every exchange on the cheapest way: a plan, where it takes less than the best one known.
  // Whether something was learnt.
  bool price_way() {
    std::vector<Step> steps = steps_of_way();
    int64_t all = 0;
    for (const Step& step : steps) all += step.ps;
    std::vector<Step> raised;
    KnownWay way;
    bool is_plan = true;
    for (Step& step : steps) {
      if (all >= steps_.most_ps) break;
      way.push_back({states_[step.to].at, std::nullopt});
      if (!step.by_exchange) continue;
      const LeastExchange& least = exchanges_.between(step.from, step.to);
      while (least.known() < Known::price && all < steps_.most_ps && work_left() > 0) {
        exchanges_.refine(step.from, step.to, steps_.most_ps - all + step.ps + 1);
        all += least.ps() - step.ps;
        step.ps = least.ps();
        if (raised.empty() || raised.back().to != step.to) raised.push_back(step);
      }
      const LeastOfWays& each = exchanges_.by_way(step.from, step.to);
      is_plan = is_plan && each.exact[each.sooner()];
      way.back().way = exchange_ways[each.sooner()];
    }
    if (all < steps_.most_ps && is_plan && fits(steps, way)) {
      steps_.most_ps = all;
      plan_ = std::move(way);
    }
    for (const Step& step : raised) learn(step);
    return !raised.empty();
  }
  void learn(const Step& step) {
    from_source_.learn(step.from, step.to);
    to_target_.learn(step.from, step.to);
  }

  // Whether each step of the cheapest way, as it is priced, keeps to the limit of peaks.
  [[nodiscard]] bool fits(const std::vector<Step>& steps, const KnownWay& way) const {
    if (p_.peak_limit == INT64_MAX) return true;
    for (size_t k = 0; k < steps.size(); ++k) {
      const SearchState& at = states_[steps[k].from].at;
      const SearchState& to = way[k].to;
      const auto keeps = [&](const Edge& edge) { return peak_of(p_, at, edge) <= p_.peak_limit; };
      const std::vector<Edge>& moves = steps_.moves.from[steps[k].from];
      const bool fit = way[k].way
                           ? keeps(exchange_edge(p_, at, to, *way[k].way))
                           : std::any_of(moves.begin(), moves.end(), [&](const Edge& edge) {
                               return edge.to == to && edge.cost.ps == steps[k].ps && keeps(edge);
                             });
      if (!fit) return false;
    }
    return true;
  }

  // Comes to know more of what takes longest of the exchanges on the cheapest way that are not
  // priced yet: its close floor, then its price. False where there is none.
  bool look_closer() {
    const std::vector<Step> steps = steps_of_way();
    const Step* longest = nullptr;
    int64_t all = 0;
    for (const Step& step : steps) {
      all += step.ps;
      if (!step.by_exchange || (longest != nullptr && step.ps <= longest->ps)) continue;
      if (exchanges_.between(step.from, step.to).known() != Known::price) longest = &step;
    }
    if (longest == nullptr) return false;
    exchanges_.refine(longest->from, longest->to, steps_.most_ps - all + longest->ps + 1);
    learn(*longest);
    return true;
  }

  // Prices the cheapest way, and again where that changes which it is.
  void close() {
    while (work_left() > 0 && steps_.shortest_ps < steps_.most_ps && price_way()) find_meeting();
  }

  // A plan that takes less than the cheapest way goes by a state that is not settled from the
  // source, and by one that is not from the target.
  [[nodiscard]] int64_t least_ps() const {
    const int64_t open = std::max(from_source_.least_by_open(), to_target_.least_by_open());
    return std::min({steps_.most_ps, steps_.shortest_ps, open});
  }

  void raise(int64_t least) {
    for (size_t i = 0; i < states_.size(); ++i) {
      LeftState& state = states_[i];
      const int64_t useless = steps_.most_ps - state.before + 1;
      int64_t left = i == ends_.source ? least : to_target_.known(i);
      if (from_source_.known(i) + left > steps_.most_ps) left = useless;
      state.left = std::max(state.left, std::min(left, useless));
    }
  }

  const LeftQuestion& q_;
  const PlanProblem& p_;
  std::vector<LeftState>& states_;
  Ends ends_;
  int64_t work_before_;
  LeastExchanges exchanges_;
  StepsBetween steps_;
  EndWays from_source_;
  EndWays to_target_;
  int64_t looks_ = 0;  // at the cheapest way
  KnownWay plan_;      // that takes steps_.most_ps, where one was found
};

// False where source or target is not among the states.
bool find_ends(const PlanProblem& p, const NodeTable& numbers, Ends& ends) {
  const int32_t source = numbers.find(p.source);
  const int32_t target = numbers.find(p.target);
  if (source < 0 || target < 0) return false;
  ends = {as_index(source), as_index(target)};
  return true;
}

// Collectives and slices; false where that takes too much. Those that lead to no useful state are
// left out when they are listed: to ask for bounds on the way takes longer.
bool list_moves(const LeftQuestion& q, const std::vector<LeftState>& states,
                const NodeTable& numbers, StateMoves& moves) {
  const PlanProblem& p = *q.problem;
  const int64_t work_before = p.work;
  moves.from.resize(states.size());
  moves.leads_to.resize(states.size());
  moves.to.resize(states.size());
  moves.finer.resize(states.size());
  moves.coarser.resize(states.size());
  MoveLimits limits;
  limits.least_latency_ps = q.collective_latency_ps;
  std::vector<Edge> edges;
  std::vector<Edge> kept;
  for (size_t i = 0; i < states.size(); ++i) {
    edges.clear();
    limits.most_ps = q.most_ps - states[i].before;
    limits.most_work = q.most_work - (p.work - work_before);
    if (limits.most_work <= 0 || !list_collectives(p, states[i].at, edges, limits)) return false;
    kept.clear();
    for (const Edge& edge : edges) {
      const int32_t to = numbers.find(edge.to);
      if (to < 0) continue;
      moves.to[as_index(to)].push_back(
          {static_cast<uint32_t>(i), static_cast<uint32_t>(kept.size())});
      moves.leads_to[i].push_back(static_cast<uint32_t>(to));
      if (edge.op == Op::slice) {
        moves.finer[i].push_back(static_cast<uint32_t>(to));
        moves.coarser[as_index(to)].push_back(static_cast<uint32_t>(i));
      }
      kept.push_back(edge);
    }
    moves.from[i].assign(kept.begin(), kept.end());  // no more room than they take
  }
  return true;
}

}  // namespace

Raised raise_left(const LeftQuestion& question, std::vector<LeftState>& states) {
  if (states.size() > most_known_states) return {};
  NodeTable numbers;
  for (const LeftState& state : states) (void)numbers.intern(state.at);
  Ends ends;
  StateMoves moves;
  if (!find_ends(*question.problem, numbers, ends)) return {};
  const int64_t work_before = question.problem->work;
  if (!list_moves(question, states, numbers, moves)) return {};
  LeftQuestion rest = question;
  rest.most_work -= question.problem->work - work_before;
  return WaysBetween(rest, states, ends, moves).run();
}

}  // namespace meshplan
