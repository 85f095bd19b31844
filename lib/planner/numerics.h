// Numerics: through how many collectives a pending reduction passes.
//
//     P(sum)P(sum) -> RR on dp, tp      one all_reduce over both: every rank adds the same numbers
//                                       in one collective
//                                       two: each rank adds partial results, "tp, then dp";
//                                       another order of steps may round differently
//
// A tensor has at most one reduction pending (sum with avg counts as one), over some of its mesh
// dims; a plan finishes all or part of it.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace meshplan {

// One note where the steps reduce anything (mesh dims of size 1 apart), else none.
[[nodiscard]] std::vector<ReductionNote> reduction_notes(const State& src,
                                                         const std::vector<Step>& steps,
                                                         const Mesh& mesh);

// "one_reduction": true. The error (no_plan) names the reduction and what would help.
[[nodiscard]] Status check_one_reduction(const std::vector<ReductionNote>& notes);

}  // namespace meshplan
