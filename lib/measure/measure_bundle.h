// A bundle measured: each wave from a barrier to its end on the slowest rank, all waves and, where
// asked for, the same members one by one, each from barrier to barrier, in turns.
//
//     wave    rounds in flight together        measured beside their predictions (plan/bundle.h)
//     whole   wave after wave                  beside totals.predicted
//     alone   the plans of its members, tensor after tensor, without barriers between them
//                                              beside what their steps promise
#pragma once

#include "measure/measure.h"
#include "replay/bundle_run.h"

namespace meshplan {

// Checks the bundle, then times it. Collective; samples are those of the slowest rank.
[[nodiscard]] Result<BundleTimes> measure_bundle(const BundleRun::Question& question,
                                                 const MeasureOptions& options);

// The same without times: what the plan says of the rounds of a bundle that was checked.
[[nodiscard]] BundleTimes untimed_bundle(const PlannedBundle& bundle, const BundleReport& report);

}  // namespace meshplan
