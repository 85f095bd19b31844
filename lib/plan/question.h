// One question to a planning algorithm, and its answer before anything is priced.
//
//     question    request P(sum)S(0) -> RS(0) on mesh "mesh", its meshes, topology and options
//     answer      steps: all_reduce on a
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace meshplan {

struct PlanQuestion {
  const MeshTable* meshes = nullptr;
  const Topology* topology = nullptr;
  const Request* request = nullptr;
  const PlanOptions* options = nullptr;
  // Only what rounds of bundles run: no far shares, nothing in laps, and two phases that those
  // fetch that want it.
  bool in_rounds = false;
  // Shards may rest on every tensor dim that a search holds, not on a few of those that neither end
  // shards: where nothing else fits a memory limit.
  bool parks_anywhere = false;
};

// Steps with their states, ops, groups by mesh_dims and reasons; prices and proof are the
// pipeline's.
struct StepList {
  std::vector<Step> steps;
  // The states passed through if nothing merges; empty if nothing merged.
  std::string unmerged_trace;
  std::vector<Warning> warnings;  // without mesh, saves and message: the pipeline fills them
  State dst;                      // the target reached
  int64_t least_ps = 0;           // no plan of the moves takes less
  Shortcuts shortcuts;            // none: no plan of the moves is cheaper
};

}  // namespace meshplan
