// What the mesh operations share: the layout of a whole mesh and of its copies.
#pragma once

#include "mesh/mesh.h"

namespace meshplan {

// All dims together, canonical.
[[nodiscard]] Layout whole_layout(const Mesh& mesh);
// Base positions of the copies of a mesh, ascending. Every mesh that the operations make tiles its universe.
[[nodiscard]] Layout copies_layout(const Mesh& mesh);

}  // namespace meshplan
