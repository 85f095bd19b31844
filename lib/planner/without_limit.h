// The plan without a memory limit in place of one under a limit that is not proven: so a limit that
// the plan without one keeps to makes none dearer.
//
//     3,456 ranks, P(sum) over four dims      22.9 MB allowed: the search ends at 234 us, its work
//                                             used up
//     the same without a limit                92 us, with a peak of 7.1 MB
#pragma once

#include "base/result.h"
#include "plan/question.h"
#include "transfer/level_map.h"

namespace meshplan {

// Whether a question with that answer is asked again without its limit.
[[nodiscard]] bool asks_without_limit(const PlanQuestion& question, const Result<StepList>& found);

// The same question in all else.
[[nodiscard]] PlanOptions without_limit(PlanOptions options);

// `unlimited`: the answer without the limit, of all the work that a question may take. Taken where
// it keeps to the limit and is cheaper, or nothing else was found; either way no plan takes less
// than is known of plans without a limit.
void take_within_limit(const PlanQuestion& question, Result<StepList> unlimited,
                       Result<StepList>& found);

}  // namespace meshplan
