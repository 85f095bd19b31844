#include "transfer/held_boxes.h"

namespace meshplan {

HeldBoxes make_held_boxes(const Mesh& mesh, const State& state, std::vector<int64_t> tensor_shape,
                          int64_t copies, const RankTable& ranks) {
  HeldBoxes held;
  held.mesh = &mesh;
  held.mesh_shape = mesh_shape(mesh);
  held.shape = std::move(tensor_shape);
  held.state = state;
  held.copies = copies;
  held.size = mesh_size(mesh);
  const std::vector<int32_t>& of_position = ranks.of_positions(*mesh.universe);
  for (int64_t copy = 0; copy < copies; ++copy) {
    for (int64_t index = 0; index < held.size; ++index) {
      held.ranks.push_back(of_position[static_cast<size_t>(position_of(mesh, copy, index))]);
    }
  }
  for (int64_t index = 0; index < held.size; ++index) {
    held.boxes.push_back(
        box_of(state, held.shape, held.mesh_shape, coordinates_of(index, held.mesh_shape)));
  }
  return held;
}

}  // namespace meshplan
