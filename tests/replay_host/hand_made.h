// Plans made by hand, step by step, for tests of the executor.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "plan/plan.h"

namespace meshplan::test {

struct HandStep {
  Op op;
  std::vector<std::string> dims;  // mesh dims, or parts as "b:(1)2"
  std::string state;
  std::optional<ReduceOp> reduce_op = std::nullopt;
  int64_t divisor = 1;
  int64_t phases = 1;
  bool whole_pieces = false;
  std::string mesh{};
  int64_t chunks = 1;
  bool fetched_by_all = false;
  int64_t laps = 1;
  int64_t far_64ths = 0;
  int64_t at_once = 0;
};

// A plan of one redistribution on `mesh` (the first mesh of `table`, or the one called so).
struct HandPlan {
  MeshTable table;
  std::string src_mesh{};
  std::string dst_mesh{};
  TensorMeta tensor;
  std::string src;
  std::vector<HandStep> steps;
  std::optional<DType> reduce_dtype = std::nullopt;
  int64_t host_ranks = 1 << 20;
};

inline State parse(const std::string& text, const Mesh& mesh, size_t rank) {
  auto state = parse_state(text, mesh_shape(mesh), rank);
  REQUIRE_MESSAGE(state.ok(), (state.ok() ? "" : state.error().message));
  return *state;
}

inline Plan make_plan(const HandPlan& hand) {
  Plan plan;
  plan.digest = "sha256:hand";
  plan.meshes = hand.table;
  if (hand.host_ranks < 1 << 20) plan.topology.levels.push_back({"host", hand.host_ranks, 370000, 10000, 500, 100});
  plan.topology.levels.push_back({"all", 1 << 20, 100000, 10000, 500, 100});
  PlannedRedistribution r;
  r.request.id = "hand";
  r.request.tensor = hand.tensor;
  r.request.reduce_dtype = hand.reduce_dtype;
  r.request.src_mesh = hand.src_mesh.empty() ? 0 : *find_mesh(plan.meshes, hand.src_mesh);
  r.request.dst_mesh = hand.dst_mesh.empty() ? r.request.src_mesh : *find_mesh(plan.meshes, hand.dst_mesh);
  const Mesh* mesh = &plan.meshes.meshes[r.request.src_mesh];
  r.request.src = parse(hand.src, *mesh, hand.tensor.shape.size());
  for (const HandStep& h : hand.steps) {
    Step step;
    step.op = h.op;
    if (!h.mesh.empty()) mesh = &plan.meshes.meshes[*find_mesh(plan.meshes, h.mesh)];
    for (const std::string& dim : h.dims) {
      auto sub_axis = parse_sub_axis(dim, dim_names(*mesh), mesh_shape(*mesh));
      REQUIRE(sub_axis.ok());
      step.mesh_dims.push_back(*sub_axis);
    }
    step.state = parse(h.state, *mesh, hand.tensor.shape.size());
    step.mesh = h.mesh;
    step.reduce_op = h.reduce_op;
    step.scale_divisor = h.divisor;
    step.phases = h.phases;
    step.chunks = h.chunks;
    step.whole_pieces = h.whole_pieces;
    step.fetched_by_all = h.fetched_by_all;
    step.laps = h.laps;
    step.far_64ths = h.far_64ths;
    step.at_once = h.at_once;
    r.steps.push_back(step);
  }
  r.dst = r.steps.empty() ? r.request.src : r.steps.back().state;
  r.request.dst = r.dst;
  plan.redistributions.push_back(std::move(r));
  return plan;
}

// A table of one mesh.
inline MeshTable one_mesh(const std::vector<std::pair<std::string, int64_t>>& dims, std::vector<int64_t> ranks = {}) {
  auto mesh = make_mesh("mesh", dims, std::move(ranks));
  REQUIRE(mesh.ok());
  MeshTable table;
  table.meshes.push_back(*mesh);
  return table;
}

}  // namespace meshplan::test
