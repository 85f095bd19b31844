// What exchanges between listed states take at least, of which more comes to be known where it is
// asked for: the latency, the peers, the boxes, floors (exchange_floor.h), the price. What is known
// of one by peers and boxes is asked first of those that take no more:
//
//     S(0)RR -> RRR        takes 40 us at least
//     S(0)S(1)R -> RRR     no less, as each rank holds part of what it holds there
//     S(0)RS(2) -> RRR     nor does this
#pragma once

#include <vector>

#include "search/exchange_floor.h"
#include "search/least_left.h"
#include "search/state_moves.h"

namespace meshplan {

class LeastExchanges {
 public:
  // `states` stay as they are, but for what is before and left.
  LeastExchanges(const LeftQuestion& question, const std::vector<LeftState>& states,
                 const StateMoves& moves);

  // Before an exchange to a state, or from one, is asked for.
  void ask_to(size_t to) { known_.ask_to(p_, known_as_[to], q_.exchange_latency_ps); }
  void ask_from(size_t from) { known_.ask_from(p_, known_as_[from], q_.exchange_latency_ps); }
  [[nodiscard]] const LeastExchange& between(size_t from, size_t to) const {
    return known_.between(known_as_[from], known_as_[to]);
  }
  [[nodiscard]] const LeastOfWays& by_way(size_t from, size_t to) const { return ways(from, to); }
  // Comes to know one thing more. `most`: that it may take, ps.
  void refine(size_t from, size_t to, int64_t most);

 private:
  [[nodiscard]] LeastOfWays& ways(size_t from, size_t to) const {
    return known_.by_way(known_as_[from], known_as_[to]);
  }
  // From those of states that slices lead to `from` from, or to one that slices of `to` lead to:
  // whether they tell more.
  bool inherit(size_t from, size_t to, LeastExchange& least) const;
  void refine_packed(size_t from, size_t to, int64_t most);
  [[nodiscard]] AnyWayFloor few_peers(size_t from, size_t to, int64_t most) const;
  LeastExchange floor_each(size_t from, size_t to, int64_t least_ps, int64_t most);
  const LeastOfWays& floor_closely(size_t from, size_t to, int64_t most);
  const LeastOfWays& price_sooner(size_t from, size_t to, int64_t most);

  const LeftQuestion& q_;
  const PlanProblem& p_;
  const std::vector<LeftState>& states_;
  const StateMoves& moves_;
  KnownExchanges& known_;
  std::vector<uint32_t> known_as_;       // the number of each state there
  std::vector<RankSides::Lists> lists_;  // of each state, where they do not pack
  std::vector<int64_t> largest_;         // box of each of these, elements
  std::vector<Packed> packed_;           // where they do
};

}  // namespace meshplan
