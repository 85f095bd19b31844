// Which box of a tensor every rank holds between two steps, over every copy of the mesh.
//
//     mesh 2 x 2 in a world of 8: 2 copies, size 4, slots 0 .. 7
//     [8], S(0)R     boxes [0:4] [0:4] [4:8] [4:8], one per rank of a copy; slot 6 has boxes[6 % 4]
//
// A slot is one rank of one copy of the mesh: slot = copy * mesh size + row-major index in the
// mesh.
#pragma once

#include <cstdint>
#include <vector>

#include "mesh/mesh.h"
#include "tensor/box.h"
#include "transfer/rank_table.h"

namespace meshplan {

struct HeldBoxes {
  const Mesh* mesh = nullptr;
  std::vector<int64_t> mesh_shape;
  std::vector<int64_t> shape;  // of the tensor
  State state;
  int64_t copies = 1;
  int64_t size = 1;            // ranks of one copy
  std::vector<int32_t> ranks;  // slot -> replay rank
  std::vector<Box> boxes;      // index in the mesh -> box (the same in every copy)
};
// `copies`: how many copies of the mesh take part, from copy 0 on.
[[nodiscard]] HeldBoxes make_held_boxes(const Mesh& mesh, const State& state,
                                        std::vector<int64_t> tensor_shape, int64_t copies,
                                        const RankTable& ranks);
[[nodiscard]] inline const Box& box_of_slot(const HeldBoxes& held, int64_t slot) {
  return held.boxes[static_cast<size_t>(slot % held.size)];
}

}  // namespace meshplan
