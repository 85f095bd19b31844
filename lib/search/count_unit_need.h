// Counts what one unit needs in one exchange (search/unit_needs.h), of the boxes that its members
// hold and want.
//
//     hosts of 2, [8], S(0)R -> RS(0)    held [0:4] by both; wanted [0:4] and [4:8] by one each
//                                        4 elements enter: [4:8], which no member holds
#pragma once

#include "search/unit_boxes.h"
#include "search/unit_needs.h"

namespace meshplan {

struct NeedQuestion {
  const UnitBoxes* held = nullptr;
  const UnitBoxes* wanted = nullptr;
  int64_t held_parts = 1;  // into which the states cut the tensor
  int64_t wanted_parts = 1;
  int64_t contributions = 1;  // to each element, that the exchange reduces
  int64_t apart = 1;          // ranks of the mesh that differ in nothing that stays pending
};

// `need`: empty before but for its memory. The boxes are of the states' lists.
void count_unit_need(const PlanProblem& p, const SearchState& from, const SearchState& to,
                     const NeedQuestion& question, UnitNeed& need);

// Whether what all members want together is counted in 64 bits: no sum is more than every rank's
// whole tensor.
[[nodiscard]] bool sums_fit(const PlanProblem& p);

}  // namespace meshplan
