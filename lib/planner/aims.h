// What an exchange on the way may aim at: the spreads through which a plan could still beat the best one known.
#pragma once

#include <vector>

#include "planner/packed.h"

namespace meshplan {

struct Aim {
  int64_t left = 0;             // bound from here to the target, ps
  int64_t before = 0;           // bound from the source to here, ps
  int64_t reached = INT64_MAX;  // what the cheapest way here that the search has found takes, ps
  View view;
  Spread at;
};

struct AimQuestion {
  const PlanProblem* problem = nullptr;
  PackedWorld* world = nullptr;  // of the problem
  const View* source = nullptr;
  const View* target = nullptr;
  uint16_t pending = 0;  // of the aims
  uint16_t made = 0;
  int64_t most_ps = INT64_MAX;   // of a plan that is of any use
  int64_t least_latency_ps = 0;  // that one communicating step takes
};

// Every arrangement of the atoms that are not pending, behind the frozen prefixes, whose two bounds together stay within `most_ps` and
// whose box the problem's state limit allows; nearest to the target first, then in the order of listing. `visits`: how many spreads may
// still be looked at, counted down; false where that was not enough: then `out` holds those near the two ends.
bool list_aims(const AimQuestion& question, int64_t& visits, std::vector<Aim>& out);

}  // namespace meshplan
