#include "planner/advice.h"

#include <doctest/doctest.h>

#include "../cost/all_states.h"
#include "../cost/small_mesh.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "planner/rank_flattens.h"

using namespace meshplan;

namespace {

MeshTable table_of(const std::vector<int64_t>& sizes) {
  MeshTable meshes;
  meshes.meshes = {test::mesh_of(sizes)};
  return meshes;
}

std::vector<Request> all_requests(const std::vector<int64_t>& sizes, size_t stride) {
  std::vector<Request> requests;
  auto states = all_states(sizes, 2, {ReduceOp::sum});
  for (size_t i = 0; i < states.size(); ++i) {
    for (size_t j = i % stride; j < states.size(); j += stride) {
      if (i == j || !states[j].partial.empty()) continue;
      Request r;
      r.id = std::to_string(requests.size());
      r.tensor = {{1024, 1024}, DType::float32};
      r.src = states[i];
      r.dst = states[j];
      r.count = 1 + static_cast<int64_t>(requests.size()) % 3;
      requests.push_back(std::move(r));
    }
  }
  return requests;
}

}  // namespace

TEST_CASE("the advice, applied, gives the promised plan, and never saves nothing") {
  const std::vector<int64_t> sizes{2, 2, 2};
  MeshTable meshes = table_of(sizes);
  auto requests = all_requests(sizes, 4);
  int64_t warned = 0;
  for (const Topology& topology : {uniform_topology(), *topology_preset("h100")}) {
    PlanOutcome base = plan_requests(meshes, topology, requests, {}, "");
    REQUIRE(base.failures.empty());
    for (const PlannedRedistribution& r : base.plan.redistributions) {
      for (const Warning& w : r.warnings) {
        ++warned;
        CAPTURE(r.trace);
        CHECK(w.kind == WarningKind::missing_flatten);
        CHECK(w.saves_ps > 0);
        CHECK(w.operations == r.totals.collectives);
        MeshTable with = meshes;
        REQUIRE(declare_flatten(with, "mesh", w.dims, w.fix_name).ok());
        PlanOutcome again = plan_requests(with, topology, {r.request}, {}, "");
        REQUIRE(again.failures.empty());
        const PlannedRedistribution& other = again.plan.redistributions[0];
        CHECK(r.totals.predicted_ps - other.totals.predicted_ps == w.saves_ps);
        CHECK(r.totals.collectives - other.totals.collectives == w.saves_collectives);
        bool used = false;
        for (const Step& s : other.steps) used = used || (s.op == w.collective && s.mesh_dims.size() == w.dims.size());
        CHECK(used);
      }
    }
  }
  MESSAGE(warned << " warnings followed");
  CHECK(warned > 50);
}

TEST_CASE("the ranking's totals are those of planning the file again") {
  const std::vector<int64_t> sizes{2, 2, 2};
  MeshTable meshes = table_of(sizes);
  auto requests = all_requests(sizes, 40);
  Topology topology = uniform_topology();
  PlanOptions options;
  FlattenRanking ranking = rank_flattens(meshes, topology, requests, options, 2);
  CHECK(ranking.exhaustive);
  REQUIRE(ranking.chosen.size() == 2);
  MeshTable with = meshes;
  int64_t before = ranking.declared_ps;
  for (const RankedFlatten& f : ranking.chosen) {
    REQUIRE(declare_flatten(with, f.mesh, f.dims).ok());
    int64_t after = plan_requests(with, topology, requests, options, "").plan.totals.predicted_ps;
    CHECK(after == f.total_ps);
    CHECK(after < before);
    before = after;
  }
  // No other two sets do better.
  const std::vector<std::vector<std::string>> sets{{"a", "b"}, {"a", "c"}, {"b", "c"}, {"a", "b", "c"}};
  for (size_t i = 0; i < sets.size(); ++i) {
    for (size_t j = i + 1; j < sets.size(); ++j) {
      MeshTable other = meshes;
      REQUIRE(declare_flatten(other, "mesh", sets[i]).ok());
      REQUIRE(declare_flatten(other, "mesh", sets[j]).ok());
      CHECK(plan_requests(other, topology, requests, options, "").plan.totals.predicted_ps >= before);
    }
  }
}

TEST_CASE("alternatives are other plans, none cheaper than the best, cheapest first") {
  const std::vector<int64_t> sizes{2, 4};
  MeshTable meshes = table_of(sizes);
  PlanOptions options;
  options.alternatives = 3;
  int64_t listed = 0;
  for (const PlannedRedistribution& r :
       plan_requests(meshes, uniform_topology(), all_requests(sizes, 3), options, "").plan.redistributions) {
    CHECK(r.alternatives.size() <= 3);
    int64_t last = r.totals.predicted_ps;
    for (const Alternative& a : r.alternatives) {
      ++listed;
      CHECK(a.totals.predicted_ps >= last);
      last = a.totals.predicted_ps;
    }
  }
  CHECK(listed > 100);
}

TEST_CASE("one_reduction reduces in one collective and a memory limit names the least peak that exists") {
  const std::vector<int64_t> sizes{2, 4};
  MeshTable meshes = table_of(sizes);
  for (const Request& r : all_requests(sizes, 1)) {
    PlanOptions options;
    options.one_reduction = true;
    PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {r}, options, "");
    REQUIRE(outcome.failures.empty());
    int64_t reducing = 0;
    for (const Step& s : outcome.plan.redistributions[0].steps) reducing += s.reduce_op.has_value();
    CHECK(reducing == (r.src.partial.empty() ? 0 : 1));

    options = {};
    options.max_memory_bytes = 1;
    PlanOutcome none = plan_requests(meshes, uniform_topology(), {r}, options, "");
    if (none.failures.empty()) continue;
    const std::string& message = none.failures[0].error.message;
    CHECK(none.failures[0].error.fault == Fault::no_plan);
    size_t at = message.find("exists is ");
    REQUIRE(at != std::string::npos);
    options.max_memory_bytes = std::stoll(message.substr(at + 10));
    PlanOutcome fits = plan_requests(meshes, uniform_topology(), {r}, options, "");
    REQUIRE(fits.failures.empty());
    CHECK(fits.plan.redistributions[0].totals.peak_bytes <= options.max_memory_bytes);
    --options.max_memory_bytes;
    CHECK(plan_requests(meshes, uniform_topology(), {r}, options, "").failures.size() == 1);
  }
}
