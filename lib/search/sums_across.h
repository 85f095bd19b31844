// Whether contributions might cross from mesh to mesh as they are, to be reduced there.
//
//     P(sum) over a of 2 x 2, ranks 0 1 2 3      0 and 2 have contributions to one sum, 1 and 3
//     P(sum) over y of 2 x 2, ranks 0 2 1 3      0 and 2 again: nothing need move
//     P(sum) over y of 2 x 2, ranks 4 5 6 7      none of those: by no step of ours
#pragma once

#include "mesh/mesh_table.h"
#include "tensor/request.h"

namespace meshplan {

// Whether both meshes are on the same ranks, and every one that has a contribution to a sum in the
// source has one to a sum with some of the same ranks in the target: a pending set of both.
// O(ranks log ranks).
[[nodiscard]] bool sums_may_cross(const Request& request, const MeshTable& meshes);

}  // namespace meshplan
