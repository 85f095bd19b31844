// Whether communicators list their ranks as coordinates do.
//
//     mesh a 2 x b 2 on ranks 0 1 2 3     by a, then b     0 1 2 3     in order
//                                         by b, then a     0 2 1 3     not
//     mesh a 4 on ranks 3 2 1 0           by a             3 2 1 0     not
#pragma once

#include <span>

#include "mesh/mesh.h"
#include "tensor/state.h"

namespace meshplan {

// Law: in every group over these sub-axes, ranks sorted by their coordinates, the first sub-axis
// slowest, have ids that ascend, as a communicator has them. Answered from strides where the ids of
// the world ascend, else all its ranks are listed.
[[nodiscard]] bool in_rank_order(const Mesh& mesh, std::span<const SubAxis> slowest_first);

}  // namespace meshplan
