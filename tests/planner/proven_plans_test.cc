// What is proven of a plan by itself, beside what bundles know: both make exchanges to shards of parts of mesh dims.
#include <doctest/doctest.h>

#include <random>

#include "../cost/small_mesh.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "planner/priced_steps.h"
#include "search/exchange_plans.h"

namespace meshplan {
namespace {

Topology h100() { return *topology_preset("h100"); }

// Every mesh dim shards some tensor dim, the last of its list, or none.
State random_shards(const Mesh& mesh, size_t tensor_dims, std::mt19937_64& random) {
  State state;
  state.shards.resize(tensor_dims);
  for (size_t m = 0; m < mesh.dims.size(); ++m) {
    const size_t d = random() % (tensor_dims + 1);
    if (d < tensor_dims) state.shards[d].push_back({static_cast<int32_t>(m), 1, mesh.dims[m].size});
  }
  return state;
}

MeshTable meshes_of_sizes(const std::vector<int64_t>& sizes) {
  MeshTable table;
  table.meshes = {test::mesh_of(sizes)};
  return table;
}

Request transposed(int64_t extent) {
  Request request;
  request.id = "x";
  request.tensor = {{extent, extent}, DType::bfloat16};
  request.src.shards = {{{0, 1, 32}}, {}};
  request.dst.shards = {{}, {{0, 1, 32}}};
  return request;
}

}  // namespace

TEST_CASE("of a mesh dim over hosts an exchange inside of them goes apart, where peers cost more, on declared groups too") {
  const MeshTable meshes = meshes_of_sizes({32});
  const PlanOutcome outcome = plan_requests(meshes, h100(), {transposed(8'192)}, {}, "");
  REQUIRE(outcome.failures.empty());
  const PlannedRedistribution& planned = outcome.plan.redistributions.front();
  CHECK(planned.proven_gap_ps == 0);
  // At once each rank has 31 peers, 28 of them in other hosts: 451 us.
  CHECK(planned.trace == "S(0)->{S(1):4,S(0):8}->S(1)");
  // The step across hosts is fetched by all: 231 us where those that want a box fetch it, behind the step inside.
  CHECK(planned.totals.predicted_ps < 220'000'000);
}

TEST_CASE("where states pack and latencies grow with ranks, what is left is known step by step") {
  // 1,024 ranks on hosts of 8, of 1,354 states all evenly cut: bounds say half of what the plan takes.
  const MeshTable meshes = meshes_of_sizes({4, 16, 8, 2});
  Request request;
  request.id = "x";
  request.tensor = {{8'192, 28'672}, DType::float32};
  request.src.shards = {{}, {{1, 1, 16}}};
  request.dst.shards = {{{1, 1, 16}}, {}};
  PlanOptions options;
  options.groups = GroupPolicy::any;
  const PlanOutcome outcome = plan_requests(meshes, h100(), {request}, options, "");
  REQUIRE(outcome.failures.empty());
  CHECK(outcome.plan.redistributions.front().proven_gap_ps == 0);
  CHECK(outcome.plan.redistributions.front().totals.predicted_ps < 330'000'000);
}

TEST_CASE("no exchanges that a bundle may run take less than a plan that is proven") {
  std::mt19937_64 random(20'261'127);
  int compared = 0;
  int by_parts = 0;
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{32}, {96}, {2, 16}, {8, 8}, {4, 32}, {64, 2}, {3, 16}, {2, 24, 2}}) {
    const MeshTable meshes = meshes_of_sizes(sizes);
    const Topology topology = h100();
    const LevelMap levels(meshes.meshes[0], topology);
    if (!levels.regular()) continue;
    for (int round = 0; round < 24; ++round) {
      Request request;
      request.id = "x";
      request.tensor = {{round % 2 == 0 ? 3'072 : 5'003, 1'536}, DType::float32};
      request.src = random_shards(meshes.meshes[0], 2, random);
      request.dst = random_shards(meshes.meshes[0], 2, random);
      const PlanOptions options;
      const PlanOutcome outcome = plan_requests(meshes, topology, {request}, options, "");
      REQUIRE(outcome.failures.empty());
      const PlannedRedistribution& planned = outcome.plan.redistributions.front();
      by_parts += planned.trace.find('{') != std::string::npos ? 1 : 0;
      const PlanQuestion question{&meshes, &topology, &request, &options};
      for (const FamilyStops& family : stops_of(question, levels, levels)) {
        for (const bool whole_pieces : {false, true}) {
          StepList list = exchanges_through(question, family.stops, whole_pieces, family.phases);
          const PlannedRedistribution other = priced_steps(meshes, topology, request, std::move(list));
          CAPTURE(planned.trace);
          CAPTURE(other.trace);
          CHECK(planned.totals.predicted_ps - planned.proven_gap_ps <= other.totals.predicted_ps);
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 1'000);
  CHECK(by_parts > 10);
}

TEST_CASE("with more parts of mesh dims than a search holds they stay whole, and the plan says that it is not proven") {
  // 11 dims of 2 on hosts of 8 that cut none, and one of 16 that they cut in two: 13 parts.
  Topology topology = test::two_levels(8, 14'000);
  std::vector<int64_t> sizes(11, 2);
  sizes.push_back(16);
  const MeshTable meshes = meshes_of_sizes(sizes);
  Request request;
  request.id = "x";
  request.tensor = {{4'096, 64}, DType::float32};
  request.src.shards = {{{11, 1, 16}}, {}};
  request.dst.shards = {{}, {{11, 1, 16}}};
  const PlanOutcome outcome = plan_requests(meshes, topology, {request}, {}, "");
  REQUIRE(outcome.failures.empty());
  const PlannedRedistribution& planned = outcome.plan.redistributions.front();
  CHECK((planned.proven_gap_ps == 0 || planned.shortcuts.has(Shortcut::too_many_axes)));
  CHECK(planned.totals.predicted_ps > 0);
}

namespace {

// 96 ranks on hosts of 8: three rows go from one tensor dim to another.
PlannedRedistribution three_rows_moved(const std::vector<int64_t>& shape, size_t from, size_t to) {
  const MeshTable meshes = meshes_of_sizes({96});
  Request request;
  request.id = "x";
  request.tensor = {shape, DType::float64};
  request.src.shards.resize(shape.size());
  request.dst.shards.resize(shape.size());
  request.src.shards[from] = {{0, 1, 96}};
  request.dst.shards[to] = {{0, 1, 96}};
  PlanOptions options;
  options.groups = GroupPolicy::any;
  const PlanOutcome outcome = plan_requests(meshes, h100(), {request}, options, "");
  REQUIRE(outcome.failures.empty());
  return outcome.plan.redistributions.front();
}

}  // namespace

TEST_CASE("uneven shards rest on a tensor dim of extent 1 that neither end shards where that takes less") {
  const PlannedRedistribution planned = three_rows_moved({64, 1, 3, 4'096}, 2, 0);
  // By way of {S(2):12,S(0):8} at first it takes as long.
  CHECK(planned.trace == "S(2)->{S(0)[1]:12,S(0)[0]:8}->{S(0):12,S(1):8}->S(0)");
  CHECK(ns_of_ps(planned.totals.predicted_ps) == 146'145);
  CHECK(planned.proven_gap_ps == 0);
  // A fifth tensor dim finds no room: nothing is proven of it, also where what is left was raised on the way.
  const PlannedRedistribution fifth = three_rows_moved({64, 1, 64, 3, 64}, 3, 0);
  CHECK(fifth.totals.predicted_ps - fifth.proven_gap_ps <= planned.totals.predicted_ps);
  CHECK(fifth.shortcuts.has(Shortcut::parking_dims));
}

}  // namespace meshplan
