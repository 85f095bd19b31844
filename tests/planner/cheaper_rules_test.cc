// A search that ends before its proof gives no plan that PyTorch's rules beat.
#include "planner/cheaper_rules.h"

#include <doctest/doctest.h>

#include "../verify/random_world.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

PlanOutcome plan_by(const MeshTable& table, const Topology& topology, const Request& request,
                    PlannerKind planner, int64_t work_budget) {
  PlanOptions options;
  options.planner = planner;
  options.max_memory_bytes = -1;
  options.advice = false;
  options.work_budget = work_budget;
  return plan_requests(table, topology, {request}, options, "");
}

}  // namespace

TEST_CASE("with no work to search with, plans are right and no dearer than the rules' own") {
  test::Random random(1123);
  int64_t compared = 0;
  int64_t taken = 0;
  for (int round = 0; round < 400; ++round) {
    const MeshTable table = test::random_table(random, {});
    const Request request = test::random_request(random, table, 0);
    const Topology topology = *topology_preset(random.one_in(2) ? "h100" : "uniform");
    const PlanOutcome searched = plan_by(table, topology, request, PlannerKind::optimal, 1);
    if (!searched.failures.empty()) continue;
    CAPTURE(round);
    const PlannedRedistribution& plan = searched.plan.redistributions.front();
    const Status proof = verify_plan(searched.plan);
    REQUIRE_MESSAGE(proof.ok(), proof.error().message);
    if (plan.shortcuts.none()) continue;
    for (const PlannerKind planner : {PlannerKind::greedy, PlannerKind::graph}) {
      const PlanOutcome rules = plan_by(table, topology, request, planner, 1);
      if (!rules.failures.empty()) continue;
      const Totals& totals = rules.plan.redistributions.front().totals;
      CHECK(plan.totals.predicted_ps <= totals.predicted_ps);
      ++compared;
      taken += plan.totals.predicted_ps == totals.predicted_ps;
    }
  }
  CHECK(compared > 50);
  CHECK(taken > 10);
}

TEST_CASE("a million ranks with sums over three dims: graph's rules beat what a search finds") {
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 1'048'576, {},
                   {{"pp", 16}, {"dp", 16}, {"fsdp", 64}, {"cp", 4}, {"ep", 2}, {"tp", 8}})
              .ok());
  const auto sizes = mesh_shape(table.meshes[0]);
  Request request;
  request.id = "reduce";
  request.tensor = {{16384, 16384}, DType::bfloat16};
  const Placement sum = partial(ReduceOp::sum);
  request.src =
      make_state(std::vector{replicate(), sum, sum, sum, replicate(), shard(1)}, sizes, 2).value();
  request.dst =
      make_state(std::vector{replicate(), replicate(), shard(0), shard(0), replicate(), shard(1)},
                 sizes, 2)
          .value();
  const PlanOutcome searched = plan_requests(table, *topology_preset("h100"), {request}, {}, "");
  PlanOptions graph;
  graph.planner = PlannerKind::graph;
  const PlanOutcome rules = plan_requests(table, *topology_preset("h100"), {request}, graph, "");
  REQUIRE(searched.failures.empty());
  REQUIRE(rules.failures.empty());
  CHECK(searched.plan.totals.predicted_ps <= rules.plan.totals.predicted_ps);
}

}  // namespace meshplan
