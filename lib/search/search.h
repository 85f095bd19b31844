// A* over states: the plan with the least predicted time that the moves (moves.h) can make.
#pragma once

#include <algorithm>
#include <vector>

#include "base/int_math.h"
#include "search/search_state.h"

namespace meshplan {

// What is minimised, in this order.
struct PlanCost {
  int64_t ps = 0;
  int64_t collectives = 0;
  int64_t wire_bytes = 0;
  auto operator<=>(const PlanCost&) const = default;
};

// Of steps one after another.
[[nodiscard]] inline PlanCost sum(PlanCost cost, const PlanCost& more) {
  cost.ps = saturating_add(cost.ps, more.ps);
  cost.collectives += more.collectives;
  cost.wire_bytes = saturating_add(cost.wire_bytes, more.wire_bytes);
  return cost;
}

struct Edge {
  Op op = Op::slice;
  uint16_t group =
      0;  // sub-axes that differ between ranks that talk; every sub-axis for an exchange
  uint16_t reduced = 0;  // sub-axes whose pending reduction it runs
  uint8_t phases = 1;
  int16_t chunks = 1;                     // of two phases
  Fetchers fetchers = Fetchers::wanting;  // of two phases
  int8_t far_64ths = 0;                   // of one
  bool whole_pieces = false;
  bool at_least = false;   // an exchange of which only that is known: cost.ps or more
  bool estimated = false;  // one that takes too much to list, as nothing better was known yet
  SearchState to;
  PlanCost cost;  // of this edge alone
};

[[nodiscard]] inline PlanCost cost_of(const std::vector<Edge>& edges) {
  PlanCost cost;
  for (const Edge& edge : edges) cost = sum(cost, edge.cost);
  return cost;
}

struct Found {
  bool exists = false;
  std::vector<Edge> edges;
  PlanCost cost;
  int64_t least_ps = 0;  // nothing these moves make takes less
  Shortcuts shortcuts;   // none: nothing these moves make is cheaper than this plan
  int64_t settled = 0;   // states that the search took up
  int64_t work = 0;      // units (search/work.h)
};

struct SearchOptions {
  // plan_optimal sets it to what is left of PlanOptions::work_budget (tensor/request.h); the value
  // here holds for tests that ask the search alone.
  int64_t work_budget =
      40'000'000;  // units (search/work.h) before the best plan so far is given with its gap
  // A question that takes more is hard: better bounds are worth their work. Where bounds
  // look at the units of many ranks, less is enough.
  int64_t easy_work = 250'000;
  // Of what is easy where units tell and ranks are many, so much goes before bounds are raised.
  int64_t unraised_percent = 33;
  // only a plan that takes less is wanted; none found: `exists` is false
  int64_t below_ps = INT64_MAX;
  const struct Found* known = nullptr;  // a plan that was found before
  bool hard = false;                    // a shorter search did not answer it
  // Asked for a plan where the question turns out to be hard; nullptr: there is none.
  const class CoarserForm* coarser = nullptr;
  bool exchange = true;  // false: collectives only (for comparisons)
  // Exchanges lead to the target alone and to a few states that gathers lead on from: a good plan
  // for little, of which nothing is proven.
  bool straight = false;
  bool collectives = true;  // false: one exchange, in one phase or two
};

[[nodiscard]] Found find_cheapest(const PlanProblem& problem, const SearchOptions& options = {});

// What a memory limit must at least allow.
struct LeastPeak {
  int64_t bytes = INT64_MAX;  // per rank, of a plan that exists
  bool proven = true;         // no plan of these moves has less: all were looked at
  std::vector<Edge> edges;    // of that plan

  // Of plans of two kinds together, such as to two targets; without their edges.
  void add(const LeastPeak& other) {
    bytes = std::min(bytes, other.bytes);
    proven = proven && other.proven;
  }
};
// Where the work does not suffice, that of the best plan so far; one exchange always runs.
[[nodiscard]] LeastPeak least_peak(const PlanProblem& problem, int64_t work_budget);

}  // namespace meshplan
