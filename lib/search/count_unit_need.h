// Counts what one unit needs in one exchange (search/unit_needs.h), of the boxes that its members
// hold and want.
//
//     hosts of 2, [8], S(0)R -> RS(0)    held [0:4] by both; wanted [0:4] and [4:8] by one each
//                                        4 elements enter: [4:8], which no member holds
#pragma once

#include "search/unit_boxes.h"
#include "search/unit_needs.h"

namespace meshplan {

// `need`: empty before but for its memory. The boxes are those that the pair's states have there.
void count_unit_need(const PlanProblem& p, const UnitPair& pair, const UnitBoxes& held,
                     const UnitBoxes& wanted, UnitNeed& need);

// Whether what all members want together is counted in 64 bits: no sum is more than every rank's
// whole tensor.
[[nodiscard]] bool sums_fit(const PlanProblem& p);

}  // namespace meshplan
