// What some rank must receive, and how long that takes, whatever the plan.
#pragma once

#include "cost/exchange.h"
#include "cost/least_times.h"
#include "mesh/mesh_table.h"
#include "plan/plan.h"

namespace meshplan {

struct Bounds {
  int64_t bytes = 0;  // received by some rank
  // no plan takes less in this model, whichever tier prices it; 0 where measured tables may say
  // anything
  int64_t ps = 0;
};

// Of one request; with "dst_order": "any" the least over the orders of whole mesh dims.
// `levels`: of its source mesh. `most_ps`: across meshes no more is told than that it takes longer.
[[nodiscard]] Bounds lower_bounds(const Request& request, const MeshTable& meshes,
                                  const LevelMap& levels, int64_t most_ps = INT64_MAX);
[[nodiscard]] Bounds lower_bounds(const Request& request, const MeshTable& meshes,
                                  const Topology& topology);

// Between two states on one mesh. `reduce_element_bytes` is the width of elements on the way where
// something is reduced. Where digits line up this takes closed forms, else the ranks are listed
// (cost/listed_bounds.h).
[[nodiscard]] Bounds lower_bounds(const LevelMap& levels, std::span<const int64_t> shape,
                                  int64_t element_bytes, int64_t reduce_element_bytes,
                                  const State& src, const State& dst);

// The same on lined-up digits, for the planner's inner loop. `within_moves`: no plan of the
// planner's moves takes less, which is tighter: none of them fetches over slow links what lies
// nearer without their latency (tests hold it against an exhaustive search). `made`: pending after,
// not before; the ranks that differ on these alone hold each value together, so that what any of
// them has need not reach the others. `several`: its ps is of plans that communicate in two steps
// or more. It is 0 under finer tiers.
[[nodiscard]] Bounds bound_digits(const Topology& topology, const LeastTimes& times,
                                  const DigitWorld& world, const DigitChange& change,
                                  bool within_moves = false, DigitMask made = 0,
                                  bool several = false);

}  // namespace meshplan
