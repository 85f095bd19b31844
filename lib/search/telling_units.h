// Which units bounds and floors look at, where levels cut a mesh unevenly or states a tensor: a few
// of many (transfer/few_units.h), as what is left out only makes them say less.
#pragma once

#include <vector>

#include "search/unit_needs.h"

namespace meshplan {

// Adds to the problem of those of each level with the fewest ranks of one copy, which share what
// enters among the fewest links; and those of rank 0 and of ranks near it, as of extents of few
// elements ranks farther off have nothing.
//
//     [2, 8192], S(0) on 64 ranks, hosts of 8     ranks 0 and 1 are in the first host; in the
//                                                 others no rank has anything
//     [32, 1000], S(0) on 100 x 8 ranks           the hosts of ranks 0, 8 and 8 * 31
// The ranks that bounds list are there already.
void look_at_units(PlanProblem& p);
// By sub-axis, the most coordinates on it that the ranks of one unit of the innermost level have:
// all that it has where that is not looked at.
[[nodiscard]] std::array<int64_t, max_sub_axes> inside_units(const PlanProblem& p);

}  // namespace meshplan
