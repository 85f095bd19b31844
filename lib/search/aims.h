// What an exchange on the way may aim at: the states through which a plan could still beat the best
// one known.
#pragma once

#include <vector>

#include "search/packed.h"

namespace meshplan {

struct Aim {
  int64_t before = 0;  // bound from the source to here, ps
  Packed packed;
  SearchState at;
};

// What is read for every aim: small, so that a pass over many stays in the caches.
struct AimKey {
  int64_t left = 0;             // bound from here to the target, ps
  int64_t reached = INT64_MAX;  // what the cheapest way here that the search has found takes, ps
  uint32_t aim = 0;             // in AimList::aims
  uint32_t group = 0;           // a number
};

// Aims that hold the same digits outside of hosts, so that they cost the same to reach over the
// outer links.
struct AimGroup {
  uint32_t begin = 0;  // in AimList::keys
  uint32_t end = 0;
};

struct AimList {
  std::vector<Aim> aims;  // in the order of listing
  // Of one group after the other, nearest to the target first, then in the order of listing.
  std::vector<AimKey> keys;
  std::vector<AimGroup> groups;  // by their nearest; one group where the world does not pack
};

struct AimQuestion {
  const PlanProblem* problem = nullptr;
  PackedWorld* world = nullptr;  // of the problem
  const Packed* source = nullptr;
  const Packed* target = nullptr;
  uint16_t pending = 0;  // of the aims
  uint16_t made = 0;
  int64_t most_ps = INT64_MAX;   // of a plan that is of any use
  int64_t least_latency_ps = 0;  // that one communicating step takes
};

// Brings the keys into their order, after what is left has changed; their groups are numbered.
void sort_aims(AimList& list);

// Every arrangement of the sub-axes that are not pending, behind the frozen prefixes, whose two
// bounds together stay within `most_ps` and whose box the problem's state limit allows. `visits`:
// how many states may still be looked at, counted down; false where that was not enough: then `out`
// holds those near the two ends.
bool list_aims(const AimQuestion& question, int64_t& visits, AimList& out);

}  // namespace meshplan
