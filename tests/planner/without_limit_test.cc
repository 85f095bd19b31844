// A memory limit that the plan without one keeps to makes no plan dearer, and none impossible.
#include "planner/without_limit.h"

#include <doctest/doctest.h>

#include "../verify/random_world.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

PlanOutcome plan_under(const MeshTable& table, const Topology& topology, const Request& request, int64_t limit, int64_t work_budget) {
  PlanOptions options;
  options.max_memory_bytes = limit;
  options.advice = false;
  options.work_budget = work_budget;
  return plan_requests(table, topology, {request}, options, "");
}

}  // namespace

TEST_CASE("a limit at or above the peak of the plan without one: no dearer, however early searches end") {
  test::Random random(20261128);
  int64_t compared = 0;
  int64_t unproven = 0;
  for (int round = 0; round < 300; ++round) {
    const MeshTable table = test::random_table(random, {});
    const Request request = test::random_request(random, table, 0);
    const Topology topology = *topology_preset(random.one_in(2) ? "h100" : "uniform");
    const int64_t budget = random.one_in(2) ? 12'000 : 60'000;
    const PlanOutcome unlimited = plan_under(table, topology, request, -1, budget);
    if (!unlimited.failures.empty()) continue;
    const PlannedRedistribution& free = unlimited.plan.redistributions.front();
    const int64_t peak = free.totals.peak_bytes;
    if (peak == 0) continue;
    CAPTURE(round);
    for (const int64_t limit : {peak, peak + 1, peak / 2 * 3, 4 * peak}) {
      CAPTURE(limit);
      const PlanOutcome limited = plan_under(table, topology, request, limit, budget);
      REQUIRE(limited.failures.empty());
      const PlannedRedistribution& plan = limited.plan.redistributions.front();
      CHECK(plan.totals.predicted_ps <= free.totals.predicted_ps);
      CHECK(plan.totals.peak_bytes <= limit);
      const Status proof = verify_plan(limited.plan);
      REQUIRE_MESSAGE(proof.ok(), proof.error().message);
      ++compared;
      unproven += plan.proven_gap_ps > 0;
    }
  }
  MESSAGE(compared << " limits, " << unproven << " plans not proven");
  CHECK(compared > 300);
  CHECK(unproven > 30);
}

TEST_CASE("a hard question under the peak of its own plan has that plan") {
  // 3,456 ranks on racks of 72: the search under the limit ended with none, and under a larger one
  // with a plan 2.5 times as dear.
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 3456, {}, {{"a", 3}, {"b", 8}, {"c", 6}, {"d", 2}, {"e", 12}}).ok());
  REQUIRE(declare_flatten(table, "mesh", {"a", "b", "c"}, "a_b_c"));
  Request request;
  request.id = "r0";
  request.tensor = {{2, 2048, 768}, DType::bfloat16};
  const std::vector<int64_t> sizes{3, 8, 6, 2, 12};
  const Placement sum = partial(ReduceOp::sum);
  request.src = make_state(std::vector<Placement>{sum, replicate(), sum, sum, sum}, sizes, 3).value();
  const std::vector<ShardOrder> order{{1, {3, 1}}};
  request.dst = make_state(std::vector<Placement>{replicate(), shard(1), shard(2), shard(1), shard(0)}, sizes, 3, order).value();
  PlanOptions options;
  options.groups = GroupPolicy::any;
  const auto planned = [&](int64_t limit) {
    options.max_memory_bytes = limit;
    const PlanOutcome outcome = plan_requests(table, *topology_preset("gb200-nvl72"), {request}, options, "");
    REQUIRE(outcome.failures.empty());
    return outcome.plan.redistributions.front().totals;
  };
  const Totals free = planned(-1);
  CHECK(planned(free.peak_bytes).predicted_ps <= free.predicted_ps);
}

}  // namespace meshplan
