// A plan to measure replays with.
#pragma once

#include <vector>

#include "mesh/mesh_table.h"
#include "plan/plan.h"
#include "tensor/state.h"

namespace meshplan {

// A plan of one step on a mesh of one dim.
inline Plan one_step(int64_t ranks, const std::vector<int64_t>& shape, const char* before, const char* after, Op op) {
  Plan plan;
  Mesh mesh = make_mesh("mesh", {{"a", ranks}}).value();
  plan.meshes.meshes.push_back(mesh);
  plan.topology.levels.push_back({"all", 1 << 20, 100000, 10000, 500, 100});
  PlannedRedistribution r;
  r.request.id = "bench";
  r.request.tensor = {shape, DType::float32};
  r.request.src = parse_state(before, std::vector<int64_t>{ranks}, shape.size()).value();
  Step step;
  step.op = op;
  step.mesh_dims = {{0, 1, ranks}};
  step.state = parse_state(after, std::vector<int64_t>{ranks}, shape.size()).value();
  if (op == Op::all_reduce || op == Op::reduce_scatter) step.reduce_op = ReduceOp::sum;
  r.steps.push_back(step);
  r.dst = r.request.dst = step.state;
  plan.redistributions.push_back(std::move(r));
  return plan;
}

}  // namespace meshplan
