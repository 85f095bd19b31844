// Which units bounds and floors look at, where levels cut a mesh unevenly or states a tensor: on
// large meshes a few of many, as what is left out only makes them say less.
//
//     24 x 16 x 2 x 6 on units of 8: 576 units, which begin at 3 places of the dim of 6
//     3 of them, spread over the mesh
#pragma once

#include <vector>

#include "search/unit_needs.h"

namespace meshplan {

// Of those of each level with the fewest ranks of one copy, which share what enters among the
// fewest links.
[[nodiscard]] std::vector<UnitRanks> units_to_look_at(const PlanProblem& p);
// By atom, the most coordinates on it that the ranks of one unit of the innermost level have: all
// that it has where that is not looked at.
[[nodiscard]] std::array<int64_t, max_atoms> inside_units(const PlanProblem& p);

}  // namespace meshplan
