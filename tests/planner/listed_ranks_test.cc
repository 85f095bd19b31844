// A mesh is what its ranks are: by a transposed view, by a list of the same ranks, or with ranks in another order within hosts, it gets as
// cheap a plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "../verify/random_world.h"
#include "planner/planner.h"
#include "verify/verify.h"

using namespace meshplan;

namespace {

Topology two_levels(int64_t unit_ranks) {
  Topology topology;
  topology.name = "two levels";
  topology.levels = {{"host", unit_ranks, 370'000, 10'000}, {"net", 1'048'576, 45'000, 25'000}};
  return topology;
}

// By a view of a root whose dims stand in the order given.
MeshTable by_view(const std::vector<std::pair<std::string, int64_t>>& dims, const std::vector<size_t>& order) {
  int64_t world = 1;
  std::vector<std::pair<std::string, int64_t>> of_root;
  std::vector<std::string> names;
  for (const auto& [name, size] : dims) {
    world *= size;
    names.push_back(name);
  }
  for (const size_t i : order) of_root.push_back(dims[i]);
  MeshTable table;
  REQUIRE(add_root(table, "root", world, {}, of_root).ok());
  REQUIRE(add_transpose(table, "mesh", "root", names).ok());
  return table;
}

MeshTable on_ranks(const std::vector<std::pair<std::string, int64_t>>& dims, std::vector<int64_t> ranks) {
  const auto mesh = make_mesh("mesh", dims, std::move(ranks));
  REQUIRE(mesh.ok());
  MeshTable table;
  table.meshes = {*mesh};
  return table;
}

Totals planned(const MeshTable& table, const Topology& topology, Request request) {
  request.src_mesh = request.dst_mesh = *find_mesh(table, "mesh");
  PlanOptions options;
  options.groups = GroupPolicy::any;
  const PlanOutcome outcome = plan_requests(table, topology, {std::move(request)}, options, "");
  REQUIRE(outcome.failures.empty());
  const Status status = verify_plan(outcome.plan);
  CHECK_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message));
  return outcome.plan.redistributions.front().totals;
}

}  // namespace

TEST_CASE("ranks listed as a transposed mesh has them get the transposed mesh's plan") {
  const std::vector<std::pair<std::string, int64_t>> dims{{"a", 2}, {"b", 2}, {"c", 4}};
  Request request;
  request.id = "r";
  request.tensor = {{2, 2048, 4096}, DType::bfloat16};
  request.src.shards = {{}, {{1, 1, 2}, {2, 1, 4}, {0, 1, 2}}, {}};
  request.dst.shards = {{{0, 1, 2}}, {}, {{1, 1, 2}}};
  request.dst.partial = {{{2, 1, 4}, ReduceOp::sum}};
  const MeshTable view = by_view(dims, {2, 0, 1});
  const std::vector<int64_t> ranks{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  REQUIRE(materialise(view.meshes[1]) == ranks);
  const int64_t by_list_ps = planned(on_ranks(dims, ranks), two_levels(8), request).predicted_ps;
  CHECK(by_list_ps == planned(view, two_levels(8), request).predicted_ps);
  CHECK(by_list_ps < 16'000'000);
}

TEST_CASE("random meshes: by views, by lists, and mixed within hosts") {
  test::Random random(41);
  int compared = 0;
  for (int tried = 0; tried < 150; ++tried) {
    CAPTURE(tried);
    const MeshTable table = test::random_table(random, {{1, 2, 2, 3, 4}, 3, 16});
    Request request = test::random_request(random, table, 2);
    for (int64_t& extent : request.tensor.shape) extent *= 1 + random.below(100);
    std::vector<std::pair<std::string, int64_t>> dims;
    for (const MeshDim& dim : table.meshes.front().dims) dims.emplace_back(dim.name, dim.size);
    std::vector<size_t> order(dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
    random.shuffle(order);
    const MeshTable view = by_view(dims, order);
    std::vector<int64_t> ranks = materialise(view.meshes[1]);
    const int64_t unit_ranks = random.pick(std::vector<int64_t>{2, 4, 8});
    const Topology topology = two_levels(unit_ranks);
    const Totals by_strides = planned(view, topology, request);
    const Totals by_list = planned(on_ranks(dims, ranks), topology, request);
    CHECK(by_list.predicted_ps == by_strides.predicted_ps);
    CHECK(by_list.wire_bytes == by_strides.wire_bytes);
    // Even ranks of each host first, where even ones and odd ones are as many.
    if (std::ssize(ranks) % unit_ranks != 0) continue;
    for (int64_t& rank : ranks) {
      const int64_t at = rank % unit_ranks;
      rank += at / 2 + at % 2 * (unit_ranks / 2) - at;
    }
    CHECK(planned(on_ranks(dims, ranks), topology, request).lower_bound_bytes == by_strides.lower_bound_bytes);
    ++compared;
  }
  CHECK(compared > 20);
}
