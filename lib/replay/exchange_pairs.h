// How many pairs of ranks an exchange makes: what holding all of it in one process takes.
//
//     65,536 ranks, S(0) -> S(1)     every rank hears every other: 4,294,901,760 pairs
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace meshplan {

// At least the pairs that exchange piece after piece, by the rank that has the most peers;
// INT64_MAX where that is more than is worth counting (transfer/list_exchange.h: listed_limit).
// `step` is an exchange of the plan's redistribution.
[[nodiscard]] int64_t exchange_pairs(const Plan& plan, const PlannedRedistribution& redistribution,
                                     size_t step);

}  // namespace meshplan
