// Shared by the mesh operations: the layout of a whole mesh and of its copies.
#pragma once

#include "mesh/mesh.h"

namespace meshplan {

// The layout of all dims together, canonical.
[[nodiscard]] Layout whole_layout(const Mesh& mesh);
// Base positions of the copies of a mesh, ascending. Every mesh made by the operations tiles its
// universe.
[[nodiscard]] Layout copies_layout(const Mesh& mesh);

}  // namespace meshplan
