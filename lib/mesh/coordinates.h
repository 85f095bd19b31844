// Coordinates of a position in the rank map: the inverse of position_of, by arithmetic on strides.
#pragma once

#include "mesh/mesh.h"

namespace meshplan {

// The index of `position` along `layout`, digit by digit: (position / stride) % size. Requires a
// layout that is a factor of a tiling of the world, as are the dims of every mesh and their
// complements. Law: index_in(dim layout, position_of(mesh, copy, i)) is the coordinate of i on that
// dim.
[[nodiscard]] int64_t index_in(const Layout& layout, int64_t position);

struct Coordinates {
  int64_t copy = 0;            // of the mesh, by ascending base position
  std::vector<int64_t> along;  // one per dim
  bool operator==(const Coordinates&) const = default;
};
// Law: position_of(mesh, c.copy, row-major index of c.along) == position.
[[nodiscard]] Coordinates coordinates_at(const Mesh& mesh, int64_t position);

// The position of a global rank. Error if the rank is not in the universe. O(world) unless the rank
// map is the identity.
[[nodiscard]] Result<int64_t> position_of_rank(const Universe& universe, int64_t rank);

}  // namespace meshplan
