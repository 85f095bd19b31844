// Where a step of a redistribution takes place.
//
//     train on ranks 0-7 -> serve on 8-15, an exchange     mesh after it: serve; 16 ranks take part
#pragma once

#include "plan/plan.h"

namespace meshplan {

// The mesh of the state that a step leaves: that of the source until an exchange crosses to the
// target's.
[[nodiscard]] const Mesh& mesh_after(const MeshTable& meshes, const Request& request,
                                     const Step& step);

// The mesh of the state before step `index`.
[[nodiscard]] const Mesh& mesh_before(const MeshTable& meshes,
                                      const PlannedRedistribution& redistribution, size_t index);

// The ranks of one group of the step: 1 where it is local. An exchange has the whole mesh, and
// between meshes of several universes all ranks of both; only its own where mesh dims of size 1
// change.
[[nodiscard]] int64_t step_ranks(const Plan& plan, const PlannedRedistribution& redistribution,
                                 const Step& step);

}  // namespace meshplan
