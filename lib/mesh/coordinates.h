// Where a position of the rank map lies: the inverse of position_of, by arithmetic on strides.
#pragma once

#include "mesh/mesh.h"

namespace meshplan {

// The index whose offset is `position` after all other modes of a tiling of the world are taken away: digit by digit (position / stride) %
// size. Requires a layout that is a factor of a tiling of the world, as the dims of every mesh and their complements are.
// Law: index_in(dim layout, position_of(mesh, copy, i)) is the coordinate of i on that dim.
[[nodiscard]] int64_t index_in(const Layout& layout, int64_t position);

struct Coordinates {
  int64_t copy = 0;            // of the mesh, by ascending base position
  std::vector<int64_t> along;  // one per dim
  bool operator==(const Coordinates&) const = default;
};
// Law: position_of(mesh, c.copy, row-major index of c.along) == position.
[[nodiscard]] Coordinates coordinates_at(const Mesh& mesh, int64_t position);

// The position of a global rank. Error where the universe does not hold it. O(world) where the rank map is not the identity.
[[nodiscard]] Result<int64_t> position_of_rank(const Universe& universe, int64_t rank);

}  // namespace meshplan
