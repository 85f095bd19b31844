// What is left at least from each of many states, where bounds between two states say too little:
// a plan goes on by steps, and each of them takes what one step takes at least.
//
//     12 x 16 x 2 x 2 on hosts of 8, S(0)[1] S(1)[3] -> R, a plan of 830 us is known
//     bound from S(0)[0,1,2,3]     670 us: its bytes over every link at once
//     in steps                     more than 830: one exchange takes too long, two fetch and share
//                                  in turn
//
// It is the cheapest way between source and target, looked for from both of them (end_ways.h), by
// prices of collectives and by what is known of exchanges: floors (exchange_floor.h), and the
// prices of those that lie on the cheapest way, the longest first. What takes long decides which
// ways are cheap, so few are priced:
//
//     S(0)S(1)S(2) -> RRR on 24 x 32 x 8, at last a step that takes 22 ms at least and 24 in truth:
//     priced first, it refuses all ways by states that are soon reached, and end with that step
//
// Where states pack (packed.h) prices are closed forms: every step is priced before a state is
// settled by it.
//
//     [8192, 28672], RS(1)RR -> RS(0)RR on 4 x 16 x 8 x 2, 1,354 states: proven with a third of the
//     work after which a gap of 43 % is left where states are taken up from the source alone
#pragma once

#include <optional>
#include <vector>

#include "search/packed.h"
#include "search/search_state.h"

namespace meshplan {

// A state that a plan of use may go through.
struct LeftState {
  SearchState at;
  int64_t before = 0;  // what a plan takes at least until there, ps
  int64_t left = 0;    // from there, ps
};

struct LeftQuestion {
  const PlanProblem* problem = nullptr;
  PackedWorld* world = nullptr;       // where states pack
  int64_t most_ps = 0;                // of a plan that is of any use
  int64_t collective_latency_ps = 0;  // that a collective takes at least
  int64_t exchange_latency_ps = 0;
  int64_t most_work = INT64_MAX;  // beyond it the rest stays as it is but for what is known
};

// A plan from the source, as where its steps lead; no way: a collective, or local steps.
struct KnownStep {
  SearchState to;
  std::optional<ExchangeWay> way = {};
};
using KnownWay = std::vector<KnownStep>;

struct Raised {
  // A plan that takes less than `most_ps`; empty where none was found. What is left is then told of
  // plans that take no longer than it.
  KnownWay way;
  int64_t least_ps = 0;  // no plan takes less, or all take as long as that one or `most_ps`
};

// Raises what is left from each state; where a plan by way of it is of no use, to more than
// `most_ps` less what is before. The states are all that such a plan may go through, source and
// target among them, else nothing is raised; nothing is made pending on the way. Law: no plan by
// way of these states with collectives and exchanges that takes `most_ps` at most has less left.
[[nodiscard]] Raised raise_left(const LeftQuestion& question, std::vector<LeftState>& states);

}  // namespace meshplan
