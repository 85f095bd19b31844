// Whether communicators list their ranks as coordinates do.
//
//     mesh a 2 x b 2 on ranks 0 1 2 3     by a, then b     0 1 2 3     in order
//                                         by b, then a     0 2 1 3     not
//     mesh a 4 on ranks 3 2 1 0           by a             3 2 1 0     not
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mesh/mesh.h"
#include "tensor/state.h"

namespace meshplan {

// The groups whose communicators list their ranks otherwise.
struct TurnedGroups {
  bool all = false;  // every group of several ranks
  // Where only some: of each the row-major index in the mesh of its rank whose coordinates on the
  // sub-axes are 0, ascending; once, in however many copies of the mesh it is turned.
  std::vector<int64_t> first_ranks;
};

// Law: in every other group over these sub-axes, ranks sorted by their coordinates, the first
// sub-axis slowest, have ids that ascend, as a communicator has them. Answered from strides where
// the ids of the world ascend, else all its ranks are listed.
[[nodiscard]] TurnedGroups turned_groups(const Mesh& mesh, std::span<const SubAxis> slowest_first);

}  // namespace meshplan
