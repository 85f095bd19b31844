// A* over spreads: the plan with the least predicted time that the moves of OPTIMAL.md can make.
#pragma once

#include <vector>

#include "planner/spread.h"

namespace meshplan {

// What is minimised, in this order (PLANNING.md, ties).
struct PlanCost {
  int64_t ps = 0;
  int64_t collectives = 0;
  int64_t wire_bytes = 0;
  auto operator<=>(const PlanCost&) const = default;
};

struct Hop {
  Op op = Op::slice;
  uint16_t group = 0;    // atoms that differ between ranks that talk; every atom for an exchange
  uint16_t reduced = 0;  // atoms whose pending reduction it runs
  uint8_t phases = 1;
  bool whole_pieces = false;
  Spread to;
  PlanCost cost;  // of this hop alone
};

struct Found {
  bool exists = false;
  std::vector<Hop> hops;
  PlanCost cost;
  int64_t proven_gap_ps = 0;  // 0: nothing these moves make is cheaper
  int64_t settled = 0;        // states that the search took up
};

struct SearchOptions {
  int64_t state_budget = 1'000'000;  // spreads that moves and aims lead to, looked at before the best so far is given with its gap
  int64_t below_ps = INT64_MAX;      // only a plan that takes less is wanted; none found: `exists` is false
  bool exchange = true;              // false: collectives only (for comparisons)
  bool collectives = true;           // false: one exchange, in one phase or two
};

[[nodiscard]] Found find_cheapest(const PlanProblem& problem, const SearchOptions& options = {});

// The least peak bytes per rank that any plan of these moves has: what a memory limit must at least allow.
[[nodiscard]] int64_t least_peak(const PlanProblem& problem);

}  // namespace meshplan
