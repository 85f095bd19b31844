// Plans the bundles of a file: which way every kind of tensor moves, and in which rounds.
//
//     1. kinds     members with equal questions are planned once, whatever their counts
//     2. ways      each kind's plan for itself, one exchange, exchanges by way of finer shardings,
//                  of one tensor by itself also in two phases behind those, all_gathers behind one
//                  exchange, or over the outer links between two
//     3. choice    ways whose bytes together load the busiest rank least, as if all overlapped
//     4. rounds    as few as staging and messages allow; more where steps overlap and that pays
//     5. the best  of the chosen ways, all at once, and every kind's plan for itself
#pragma once

#include "base/result.h"
#include "plan/plan.h"
#include "planner/plan_groups.h"
#include "planner/planner.h"

namespace meshplan {

// Those of a file whose ranks are too many to list, as bundles need them (no_plan): all or none.
// To be asked before anything is planned that could not be used.
[[nodiscard]] std::vector<PlanFailure> refused_bundles(const MeshTable& meshes,
                                                       const std::vector<BundleRequest>& bundles);

// The plan's redistributions are planned each for itself; those of the bundle's members become
// what the bundle runs. It is none that is refused. Errors (no_plan): a tensor that does not fit
// the staging, a round that does not fit the messages, whatever is done.
[[nodiscard]] Result<PlannedBundle> plan_bundle(Plan& plan, const BundleRequest& bundle,
                                                PlanGroups& groups);

}  // namespace meshplan
