#include "search/least_left.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/exchange_floor.h"
#include "search/moves.h"
#include "search/search_nodes.h"
#include "search/work.h"

namespace meshplan {
namespace {

class Backwards {
 public:
  Backwards(const LeftQuestion& question, std::vector<LeftState>& states)
      : q_(question), p_(*question.problem), states_(states), work_before_(p_.work) {}

  void run() {
    if (!list_moves()) return;
    ways_.assign(states_.size(), {});
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].at == p_.target) ways_[i].left = 0;
    }
    for (size_t next = nearest(); next < states_.size(); next = nearest()) {
      ways_[next].settled = true;
      if (work_left() < 0) return raise(ways_[next].left);
      if (saturating_add(states_[next].before, ways_[next].left) <= q_.most_ps) lead_back(next);
    }
    raise(INT64_MAX);
  }

 private:
  struct Way {
    int64_t left = INT64_MAX;  // by the best way known
    bool settled = false;
  };
  struct Move {
    size_t from = 0;
    int64_t ps = 0;
  };

  [[nodiscard]] int64_t work_left() const { return q_.most_work - (p_.work - work_before_); }

  // The collectives and slices that lead to each state; false where that takes too much.
  bool list_moves() {
    NodeTable numbers;
    for (const LeftState& state : states_) (void)numbers.intern(state.at);
    moves_.resize(states_.size());
    MoveLimits limits;
    limits.least_latency_ps = q_.collective_latency_ps;
    limits.world = q_.world;
    limits.target = q_.target;
    std::vector<Edge> edges;
    for (size_t i = 0; i < states_.size(); ++i) {
      edges.clear();
      limits.most_ps = most_left(i) - 1;
      limits.most_work = work_left();
      if (limits.most_work <= 0 || !list_collectives(p_, states_[i].at, edges, limits))
        return false;
      for (Edge& edge : edges) {
        const int32_t to = numbers.find(edge.to);
        if (to < 0) continue;
        if (!is_local(edge.op) && edge.cost.collectives == 0)
          price_collective(p_, states_[i].at, edge);
        moves_[as_index(to)].push_back({i, edge.cost.ps});
      }
    }
    return true;
  }

  // From so much on, what is left is too much.
  [[nodiscard]] int64_t most_left(size_t i) const { return q_.most_ps - states_[i].before + 1; }

  // Of those not settled; the number of states where nothing leads to the rest.
  [[nodiscard]] size_t nearest() const {
    size_t best = states_.size();
    for (size_t i = 0; i < states_.size(); ++i) {
      if (ways_[i].settled || ways_[i].left == INT64_MAX) continue;
      if (best == states_.size() || ways_[i].left < ways_[best].left) best = i;
    }
    return best;
  }

  void lead_back(size_t to) {
    const int64_t left = ways_[to].left;
    for (const Move& move : moves_[to]) offer(move.from, saturating_add(move.ps, left));
    for (size_t i = 0; i < states_.size(); ++i) {
      if (!ways_[i].settled) lead_back_by_exchange(i, to);
    }
  }
  // No less than what is known to be left.
  void offer(size_t i, int64_t left) {
    ways_[i].left = std::min(ways_[i].left, std::max(left, states_[i].left));
  }

  void lead_back_by_exchange(size_t i, size_t to) {
    const SearchState& from = states_[i].at;
    const SearchState& aim = states_[to].at;
    if ((aim.pending & ~from.pending) != 0) return;
    p_.work += work::key;
    if (ways_[i].left <= states_[i].left) return;
    // What the exchange may take.
    const int64_t most = std::min(ways_[i].left, most_left(i)) - ways_[to].left;
    if (q_.exchange_latency_ps >= most) return;
    const int64_t bound = bound_between(p_, from, aim, false, most).ps;
    if (bound >= most) return;
    int64_t least = exchange_floor_ps(p_, from, aim, 1, most);
    if (q_.two_phases && from.pending == aim.pending && members_share(p_, aim))
      least = std::min(least, exchange_floor_ps(p_, from, aim, 2, std::min(most, least)));
    offer(i, saturating_add(std::max(bound, least), ways_[to].left));
  }

  // What is left from those that are not settled is `settled` at least.
  void raise(int64_t settled) {
    for (size_t i = 0; i < states_.size(); ++i) {
      const int64_t left = std::min(ways_[i].settled ? ways_[i].left : settled, most_left(i));
      states_[i].left = std::max(states_[i].left, left);
    }
  }

  const LeftQuestion& q_;
  const PlanProblem& p_;
  std::vector<LeftState>& states_;
  int64_t work_before_;
  std::vector<std::vector<Move>> moves_;  // by where they lead
  std::vector<Way> ways_;
};

}  // namespace

void raise_left(const LeftQuestion& question, std::vector<LeftState>& states) {
  Backwards(question, states).run();
}

}  // namespace meshplan
