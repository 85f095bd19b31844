// Plans to measure replays with.
#pragma once

#include <algorithm>
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

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct OneStep {
  const char* before;
  const char* after;
  Op op;
  std::vector<int64_t> shape;
};
// With `elements` of float32 a rank, whose chunks lie one behind the other.
inline std::vector<OneStep> collectives_to_measure(int64_t ranks, int64_t elements) {
  const int64_t even = elements / ranks * ranks;
  return {{"S(0)", "R", Op::all_gather, {ranks, elements}},
          {"P(sum)", "R", Op::all_reduce, {elements}},
          {"P(sum)", "S(0)", Op::reduce_scatter, {even}},
          {"S(0)", "S(1)", Op::all_to_all, {ranks, even}}};
}

}  // namespace meshplan
