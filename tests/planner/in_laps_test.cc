// Exchanges whose ranks would fetch from one holder each, which does not fill their links: in laps each asks two.
#include <doctest/doctest.h>

#include <utility>

#include "cost/topology.h"
#include "planner/small_bundle.h"
#include "search/optimal.h"
#include "verify/verify.h"

using namespace meshplan;

namespace {

Plan planned_alone(const MeshTable& table, const Topology& topology, const Request& request, int64_t max_memory_bytes = 0) {
  PlanOptions options;
  options.max_memory_bytes = max_memory_bytes;
  PlanOutcome outcome = plan_requests(table, topology, {request}, options, "");
  REQUIRE(outcome.failures.empty());
  const Status status = verify_plan(outcome.plan);
  CHECK_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message));
  return outcome.plan;
}

// 8 ranks of one host to the 8 of another, which all want everything.
MeshTable two_hosts() { return two_roots({{"train", 8}}, {{"serve", 8}}, 8); }
Request weights() { return request_of(two_hosts(), "weights", {65'543, 28'672}, "S(0)", "R", 1); }

}  // namespace

TEST_CASE("as many shards as ranks that fetch, and one peer reaches half of a rank's links: two laps") {
  const Topology h100 = *topology_preset("h100");
  const Plan plan = planned_alone(two_hosts(), h100, weights());
  const PlannedRedistribution& r = plan.redistributions[0];
  REQUIRE(r.steps.size() == 1);
  const Step& step = std::as_const(r.steps).list()[0];
  CHECK(step.phases == 2);
  CHECK(step.fetched_by_all);
  CHECK(step.laps == 2);
  CHECK(r.totals.predicted_ps < r.totals.lower_bound_ps * 23 / 20);
  // In one lap a rank's links wait for its one peer; in one phase with a gather behind it the one waits for the other.
  Topology of_any_rate = h100;
  for (TopologyLevel& level : of_any_rate.levels) level.peer_mb_per_s = 0;
  const Plan at_full_rate = planned_alone(two_hosts(), of_any_rate, weights());
  CHECK(std::as_const(at_full_rate.redistributions[0].steps).list()[0].laps == 1);
}

TEST_CASE("the same shards on other hosts: each rank would receive its one from one rank") {
  const Topology h100 = *topology_preset("h100");
  const MeshTable table = two_roots({{"train", 24}}, {{"serve", 24}}, 24);
  const Plan plan = planned_alone(table, h100, request_of(table, "weights", {65'543, 28'672}, "S(0)", "S(0)", 1));
  const PlannedRedistribution& r = plan.redistributions[0];
  REQUIRE(r.steps.size() == 1);
  CHECK(std::as_const(r.steps).list()[0].laps == 2);
  CHECK(r.totals.predicted_ps < r.totals.lower_bound_ps * 6 / 5);
  // A small one is not worth the peers.
  const Plan small = planned_alone(table, h100, request_of(table, "weights", {4'099, 28}, "S(0)", "S(0)", 1));
  CHECK(std::as_const(small.redistributions[0].steps).list()[0].phases == 1);
}

TEST_CASE("2 hosts of 8 gather what is cut between them: each rank would fetch its part from one of the other host") {
  const Topology h100 = *topology_preset("h100");
  MeshTable table;
  REQUIRE(add_root(table, "fsdp", 16, {}, {{"dp", 2}, {"tp", 8}}).ok());
  const Request head = request_of(table, "head", {128'256, 8'192}, "S(0)R", "RR", 1);
  const Plan plan = planned_alone(table, h100, head);
  const PlannedRedistribution& r = plan.redistributions[0];
  REQUIRE(r.steps.size() == 1);
  const Step& step = std::as_const(r.steps).list()[0];
  CHECK(step.phases == 2);
  CHECK(!step.fetched_by_all);
  CHECK(step.laps == 2);
  CHECK(r.proven_gap_ps == 0);
  CHECK(r.totals.predicted_ps < r.totals.lower_bound_ps * 27 / 20);
  // The second peer takes its time, too.
  const Plan small = planned_alone(table, h100, request_of(table, "bias", {1, 8'192}, "S(1)R", "RR", 1));
  for (const Step& each : std::as_const(small.redistributions[0].steps).list()) CHECK(each.laps == 1);
  // Rounds of a bundle run nothing in laps.
  const LevelMap levels(table.meshes[0], h100);
  const PlanOptions options;
  work::Budget budget{options.work_budget};
  const auto in_rounds = plan_optimal({&table, &h100, &head, &options, true}, levels, budget, {});
  REQUIRE(in_rounds.ok());
  for (const Step& each : in_rounds->steps) CHECK(each.laps == 1);
}

TEST_CASE("8 hosts of 8, each rank wants another host's shard that its neighbours do not want: two holders are asked all the same") {
  const MeshTable table = one_root({{"a", 8}, {"b", 8}});
  const Plan plan = planned_alone(table, *topology_preset("h100"), request_of(table, "turned", {33'554'432}, "S(0)R", "RS(0)", 1), -1);
  const PlannedRedistribution& r = plan.redistributions[0];
  REQUIRE(r.steps.size() == 1);
  CHECK(std::as_const(r.steps).list()[0].laps == 2);
  CHECK(r.proven_gap_ps == 0);
  // 319 us with one holder.
  CHECK(r.totals.predicted_ps < 240'000'000);
}

TEST_CASE("where laps need more memory than there is, there is a plan without") {
  const Topology h100 = *topology_preset("h100");
  const Plan plan = planned_alone(two_hosts(), h100, weights());
  const int64_t limit = plan.redistributions[0].totals.peak_bytes / 4 * 3;
  const Plan less = planned_alone(two_hosts(), h100, weights(), limit);
  CHECK(less.redistributions[0].totals.peak_bytes <= limit);
  for (const Step& step : std::as_const(less.redistributions[0].steps).list()) CHECK(step.laps == 1);
}
