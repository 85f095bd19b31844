// What the waves of a bundle take (plan/bundle.h, "a wave"), counted rank by rank from its rounds.
//
//     wave 0   one round            its predicted_ps
//     wave 1   two exchanges        the two together: they share what they use of a level
//     wave 2   an exchange beside   the longer of the exchange by itself, and of the collective
//              a collective         and what is then left of the exchange
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace meshplan {

// In picoseconds, by wave; their sum is the bundle's predicted_ps, but for what a file rounds.
// Errors (wrong_data): a round of what it cannot run, in a plan that is not proven.
[[nodiscard]] Result<std::vector<int64_t>> wave_times_ps(const Plan& plan,
                                                         const PlannedBundle& bundle);

}  // namespace meshplan
