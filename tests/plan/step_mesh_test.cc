#include "plan/step_mesh.h"

#include <doctest/doctest.h>

using namespace meshplan;

namespace {

// From 8 ranks to 8 others: over tp, across by all 16, a slice there.
Plan crossing() {
  Plan plan;
  REQUIRE(add_root(plan.meshes, "train", 8, {}, {{"dp", 2}, {"tp", 4}}).ok());
  REQUIRE(add_root(plan.meshes, "serve", 8, {8, 9, 10, 11, 12, 13, 14, 15}, {{"ep", 4}, {"tp", 2}}).ok());
  plan.groups.resize(2);
  plan.groups[0].id = "tp";
  plan.groups[0].size = 4;
  plan.groups[1].id = "train+serve";
  plan.groups[1].size = 16;
  PlannedRedistribution r;
  r.request.src_mesh = 0;
  r.request.dst_mesh = 1;
  Step over_tp;
  over_tp.op = Op::all_gather;
  over_tp.mesh_dims = {{1, 1, 4}};
  over_tp.group = "tp";
  over_tp.mesh = "train";
  Step across;
  across.op = Op::exchange;
  across.mesh_dims = {{0, 1, 4}, {1, 1, 2}};
  across.group = "train+serve";
  across.mesh = "serve";
  Step slice;
  slice.op = Op::slice;
  slice.mesh_dims = {{1, 1, 2}};
  slice.mesh = "serve";
  r.steps = {over_tp, across, slice};
  plan.redistributions.push_back(std::move(r));
  return plan;
}

}  // namespace

TEST_CASE("a step leaves the mesh that it names, and has the ranks of its group") {
  const Plan plan = crossing();
  const PlannedRedistribution& r = plan.redistributions.front();
  CHECK(mesh_after(plan.meshes, r.request, r.steps[0]).name == "train");
  CHECK(mesh_after(plan.meshes, r.request, r.steps[1]).name == "serve");
  CHECK(mesh_after(plan.meshes, r.request, r.steps[2]).name == "serve");
  CHECK(mesh_before(plan.meshes, r, 0).name == "train");
  CHECK(mesh_before(plan.meshes, r, 1).name == "train");
  CHECK(mesh_before(plan.meshes, r, 2).name == "serve");
  CHECK(step_ranks(plan, r, r.steps[0]) == 4);
  CHECK(step_ranks(plan, r, r.steps[1]) == 16);
  CHECK(step_ranks(plan, r, r.steps[2]) == 1);
}

TEST_CASE("on one mesh no step names it, and an exchange without a group has its ranks") {
  Plan plan = crossing();
  PlannedRedistribution r = plan.redistributions.front();
  r.request.dst_mesh = 0;
  Step exchange;
  exchange.op = Op::exchange;
  exchange.mesh_dims = {{1, 1, 4}};
  CHECK(mesh_after(plan.meshes, r.request, exchange).name == "train");
  CHECK(step_ranks(plan, r, exchange) == 8);
}
