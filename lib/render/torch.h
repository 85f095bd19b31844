// A plan as PyTorch code to use in the user's program.
//
//     redistribution  P(sum)S(0) -> S(0)S(0)     def layers_wq_grad(x, mesh):
//     step 0          P(sum)S(0) -> S(1)S(0)         x = x.redistribute(mesh, [Shard(1), Shard(0)])
//     step 1          S(1)S(0)   -> S(0)S(0)         x = x.redistribute(mesh, [Shard(0), Shard(0)])
//
// One function a redistribution, one `redistribute` call a step, so that PyTorch, which plans every
// call by itself, has no choice left. Where its own primitives would do something else than the
// step says, a comment stands there with the reason (torch_obstacle). A step on several mesh dims
// is then called one mesh dim at a time where that works; else the call leaves that leg to
// PyTorch's planner.
#pragma once

#include <string>

#include "plan/plan.h"

namespace meshplan {

// A Python module: the flattened meshes to declare, then the functions, then REDISTRIBUTIONS from
// id to function. Ends in a newline.
[[nodiscard]] std::string render_torch(const Plan& plan);

// Why one call of DTensor.redistribute from `before` to the step's state would not run as this step
// on this mesh; empty where it does. `mesh` is the mesh of both states.
[[nodiscard]] std::string torch_obstacle(const MeshTable& meshes, const Mesh& mesh,
                                         const TensorMeta& tensor, const State& before,
                                         const Step& step);

}  // namespace meshplan
