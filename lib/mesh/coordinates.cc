#include "mesh/coordinates.h"

#include <algorithm>

#include "mesh/build.h"

namespace meshplan {

int64_t index_in(const Layout& layout, int64_t position) {
  int64_t index = 0;
  for (const Mode& mode : layout.modes) {
    if (mode.size > 1) index = index * mode.size + position / mode.stride % mode.size;
  }
  return index;
}

Coordinates coordinates_at(const Mesh& mesh, int64_t position) {
  Coordinates coordinates{index_in(copies_layout(mesh), position), {}};
  coordinates.along.reserve(mesh.dims.size());
  for (const MeshDim& dim : mesh.dims) coordinates.along.push_back(index_in(dim.layout, position));
  return coordinates;
}

Result<int64_t> position_of_rank(const Universe& universe, int64_t rank) {
  const auto found = std::find(universe.ranks.begin(), universe.ranks.end(), rank);
  if (found != universe.ranks.end()) return found - universe.ranks.begin();
  if (universe.ranks.empty() && rank >= 0 && rank < universe.world) return rank;
  return bad_input("rank " + std::to_string(rank) + " is not in the " + to_text(universe));
}

}  // namespace meshplan
