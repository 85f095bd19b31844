// Which units bounds and floors look at, where levels cut a mesh unevenly or states a tensor: a few
// of many (transfer/few_units.h), as what is left out only makes them say less.
#pragma once

#include <vector>

#include "search/unit_needs.h"

namespace meshplan {

// Of those of each level with the fewest ranks of one copy, which share what enters among the
// fewest links.
[[nodiscard]] std::vector<UnitRanks> units_to_look_at(const PlanProblem& p);
// By sub-axis, the most coordinates on it that the ranks of one unit of the innermost level have:
// all that it has where that is not looked at.
[[nodiscard]] std::array<int64_t, max_sub_axes> inside_units(const PlanProblem& p);

}  // namespace meshplan
