// Plans one bundle of a file, or says what it needs.
//
//     max_staging_bytes 8192     what is tried with it (bundles.h): in rounds of 5000 bytes
//                       5000     what is tried with it needs 8192, but with 1 it is 4000: by those
//                       3999     neither fits: 4000 are named, which is enough
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "planner/plan_groups.h"
#include "planner/planner.h"

namespace meshplan {

// Those of a file whose ranks are too many to list, as bundles need them (no_plan): all or none.
// To be asked before anything is planned that could not be used.
[[nodiscard]] std::vector<PlanFailure> refused_bundles(const MeshTable& meshes,
                                                       const std::vector<BundleRequest>& bundles);

// Whether a planned bundle is right; an error where that takes more than a proof looks at.
using BundleProof = std::function<Status(const PlannedBundle& planned)>;

// The plan's redistributions are planned each for itself; those of the bundle's members become
// what the bundle runs. It is none that is refused, and it is proven: where its rounds are too many
// for that, by schedules of fewer, at last of collectives alone. Errors (no_plan): a tensor that
// does not fit the staging, a round that does not fit the messages, whatever is tried; or that of
// the first proof. Law: with the staging that an error names the bundle has a plan.
[[nodiscard]] Result<PlannedBundle> plan_bundle(Plan& plan, const BundleRequest& bundle,
                                                PlanGroups& groups, const BundleProof& proof);

}  // namespace meshplan
