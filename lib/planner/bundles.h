// Plans the bundles of a file: which way every kind of tensor moves, and in which rounds.
//
//     1. kinds     members with equal questions are planned once, whatever their counts
//     2. ways      one exchange, exchanges by way of finer shardings, of one tensor by itself also
//                  in two phases behind those, all_gathers behind one exchange, or over the outer
//                  links between two; each kind's plan for itself, its two phases in no chunks
//     3. choice    ways whose bytes together load the busiest rank least, as if all overlapped
//     4. rounds    as few as staging and messages allow; more where steps overlap and that pays
//     5. the best  of the chosen ways, all at once, and every kind's plan for itself; where that is
//                  far from the bound kind by kind by any way whose schedule takes less, and each
//                  kind in rounds of its own; no other choice is tried once counting has taken
//                  seconds
#pragma once

#include <optional>

#include "base/result.h"
#include "plan/plan.h"
#include "planner/bundle_ways.h"
#include "planner/plan_groups.h"

namespace meshplan {

// What may be tried.
struct BundleEffort {
  int64_t most = 0;  // that one schedule is counted of, as most_counted is
  Ways ways = Ways::all;
};

struct TriedBundle {
  Result<PlannedBundle> planned;
  // Of the rounds that were tried and keep to the messages, bytes; nullopt: none do.
  std::optional<int64_t> least_staging;
  int64_t looked_at = 0;  // pairs of ranks of parts of rounds, and ranks in rounds
};
// By the rounds that are tried where `staging` bytes are allowed, and where none of them fit by
// those that need least, if that is no more than is asked for. Members of what is planned become
// what it runs.
[[nodiscard]] TriedBundle try_bundle(Plan& plan, const BundleRequest& asked, PlanGroups& groups,
                                     int64_t staging, const BundleEffort& effort);

}  // namespace meshplan
