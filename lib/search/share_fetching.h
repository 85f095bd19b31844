// Steps on one mesh of a plan across meshes, found by a search: exchanges of them in which all
// ranks of units share the fetching where that takes less (transfer/README.md, "Fetched by all").
// Searches know nothing of that way, so it changes no other step.
//
//     8 ranks S(0)R -> 64 ranks RS(0), shuffled over 8 hosts, by way of S(1)S(0): each group of 8
//     that wants a box lies in several hosts, and some rank has none of its group beside it
//     second step    that rank fetches 7 parts alone; or its host's 8 ranks fetch 5 each for all
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "transfer/level_map.h"

namespace meshplan {

struct SharedFetching {
  int64_t saved_ps = 0;
  int64_t exchanges = 0;  // that were priced so
};
// `request`: on the mesh of `levels`, its source the state before `steps`. No such exchange has a
// peak above `most_peak`.
SharedFetching share_fetching(const LevelMap& levels, const Request& request, int64_t most_peak,
                              std::vector<Step>& steps);

}  // namespace meshplan
