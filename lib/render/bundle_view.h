// What renderings say of bundles.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "render/plan_view.h"

namespace meshplan {

// "bundle sync: 723 tensors in 9 rounds, 395 ms predicted (at least 392 ms; 429 ms one by one),
// staging 1.85 GiB of 2.00 GiB, at most 512 messages of 1,024"
[[nodiscard]] std::string bundle_line(const PlannedBundle& bundle, const ShowOptions& options);
// One row a round; beyond the first few only with all detail.
[[nodiscard]] Table round_table(const Plan& plan, const PlannedBundle& bundle,
                                const ShowOptions& options);
// "w1 step 0 x3, w2 step 0 piece 1 of 4, w3 step 0 phase 2 piece 1 of 4": the parts of a round.
[[nodiscard]] std::string parts_text(const Plan& plan, const BundleRound& round);
// When a round runs, in nanoseconds from the bundle's begin, as long as it takes by itself: of a
// wave the collectives one after another from its begin, exchanges beside them up to its end, as
// what they move over the links of a collective comes behind it; exchanges alone from its begin.
// The last wave ends with the bundle. Without costs in waves, each of length 1.
struct RoundTime {
  int64_t start = 0;
  int64_t length = 0;
};
[[nodiscard]] std::vector<RoundTime> round_times(const Plan& plan, const PlannedBundle& bundle,
                                                 bool costs);
// How the members move and why, the rounds, and how their figures come about.
[[nodiscard]] std::string explain_bundle(const Plan& plan, const PlannedBundle& bundle);

}  // namespace meshplan
