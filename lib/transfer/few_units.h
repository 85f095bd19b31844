// A few units of a level that stand for all, and what ranks of one unit have in common: the ranks
// of a mesh are listed for it once, whatever is asked of them.
//
//     24 x 16 x 2 x 6 on units of 8: 576 units, which begin at 3 places of the dim of 6
//     3 of them, spread over the mesh
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/state.h"
#include "transfer/rank_classes.h"

namespace meshplan {

// The ranks of one copy of a mesh in one unit: their indices in the mesh, by ascending global id.
using UnitMembers = std::vector<int64_t>;

// Of those with the fewest ranks, which share what enters among the fewest links, three at most,
// spread over the mesh. `classes`: of the ranks of which none are kept apart. `unit_ranks`:
// consecutive global ids of one unit. Those of more than `most_members` ranks are left out.
[[nodiscard]] std::vector<UnitMembers> list_few_units(const std::vector<RankClass>& classes,
                                                      int64_t unit_ranks, size_t most_members);

// The unit that the rank of this index in the mesh is in; empty where it has more than
// `most_members` ranks.
[[nodiscard]] UnitMembers list_unit_of(const std::vector<RankClass>& classes, int64_t unit_ranks,
                                       int64_t index, size_t most_members);

// The most coordinates on a sub-axis that the ranks of one unit have.
[[nodiscard]] int64_t most_coordinates_inside(const std::vector<RankClass>& classes,
                                              int64_t unit_ranks, const SubAxis& sub_axis,
                                              std::span<const int64_t> mesh_shape);

}  // namespace meshplan
