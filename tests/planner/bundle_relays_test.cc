// What passing on takes at least, in whole bundles: the bound, and how close plans come to it.
#include <doctest/doctest.h>

#include "planner/small_bundle.h"

namespace meshplan {
namespace {

// 128 MiB from TP x DP on the first hosts to TP x DP on others, replicas TP ranks apart where tp is
// the last dim.
Plan sync_of(const Topology& topology, const Dims& src, const Dims& dst, int64_t count = 1, int64_t first_of_dst = 1024) {
  const MeshTable table = two_roots(src, dst, first_of_dst);
  const auto sharded = [](const Dims& dims) { return dims.size() == 1 ? "R" : dims.back().first == "tp" ? "RS(0)" : "S(0)R"; };
  const std::vector<Request> requests{request_of(table, "w", {8192, 8192}, sharded(src), sharded(dst), count)};
  return planned(table, topology, requests, {});
}

Topology two_levels() { return hosts_of(8, 10'000); }

int64_t relay_bound_of(const Plan& plan) { return plan.bundles.front().totals.lower_bound_ps; }

}  // namespace

TEST_CASE("one host that gives to 16 loses what its longest wave brings to few: the bound says so") {
  // 25 us and 373 us of bytes are 1.47 times less than any schedule takes: in a wave that gives a
  // quarter of them away 128 NICs take in what 8 send.
  Topology topology = two_levels();
  topology.levels[1].latency_ns = 25'000;
  const Plan plan = sync_of(topology, {{"dp", 8}}, {{"dp", 16}, {"tp", 8}});
  CHECK(above_bound(plan) < 1.01);
  CHECK(relay_bound_of(plan) > 575'000'000);
  CHECK(plan.redistributions[0].steps.size() > 1);
}

TEST_CASE("hosts share what they have while the other half crosses: by a stop in between 1.07 to 1.09 of the bound") {
  Topology topology = two_levels();
  topology.levels[1].latency_ns = 25'000;
  const Dims together{{"tp", 2}, {"dp", 16}};
  for (const auto& [src, dst] : {std::pair<Dims, Dims>{{{"dp", 8}}, {{"dp", 16}}},
                                 {{{"dp", 8}}, together},
                                 {{{"dp", 16}}, together},
                                 {{{"tp", 4}, {"dp", 2}}, {{"dp", 16}}}}) {
    const Plan plan = sync_of(topology, src, dst);
    INFO(ranks_in(src), " -> ", ranks_in(dst));
    CHECK(above_bound(plan) < 1.04);
    const auto& steps = std::as_const(plan.redistributions[0].steps);
    REQUIRE(steps.size() == 2);
    CHECK(steps[0].phases == 1);
    CHECK(steps[1].phases == 2);
    const BundleRound& last = plan.bundles.front().rounds.back();
    CHECK(last.parts.front().pieces > 2);
  }
}

TEST_CASE("ranks of one host share what its NICs brought in waves of their own") {
  Topology topology = two_levels();
  topology.levels[1].latency_ns = 25'000;
  const Plan plan = sync_of(topology, {{"dp", 4}, {"tp", 8}}, {{"dp", 8}});
  CHECK(above_bound(plan) < 1.01);
  CHECK(relay_bound_of(plan) > 540'000'000);
}

TEST_CASE("many tensors hide their latencies: the bound of one grows by bytes alone") {
  Topology topology = two_levels();
  topology.levels[1].latency_ns = 25'000;
  const Dims src{{"dp", 8}};
  const Dims dst{{"dp", 16}, {"tp", 8}};
  const int64_t one = relay_bound_of(sync_of(topology, src, dst));
  const Plan many = sync_of(topology, src, dst, 50);
  CHECK(relay_bound_of(many) < 40 * one);
  CHECK(above_bound(many) < 1.08);
}

TEST_CASE("kinds of 80 and 160 tensors go into 40 buckets, of which each has as much of both") {
  // 64 buckets, one or two of the 80 in each, take 32.25 ms.
  Topology topology = two_levels();
  topology.levels[1].latency_ns = 25'000;
  const MeshTable table = two_roots({{"tp", 8}, {"dp", 8}}, {{"tp", 8}, {"dp", 16}}, 1024);
  const Plan plan = planned(
      table, topology,
      {request_of(table, "wq", {8192, 8192}, "S(0)R", "S(0)R", 80), request_of(table, "w1", {28672, 8192}, "S(0)R", "S(0)R", 160)}, {});
  CHECK(plan.redistributions[0].steps.size() == 3);
  CHECK(plan.bundles.front().rounds.size() == 120);
  CHECK(plan.bundles.front().totals.predicted_ps < 32'200'000'000);
}

TEST_CASE("without latencies waves cost nothing, and passing on nothing more than bytes") {
  const Plan plan = sync_of(hosts_of(8, 0), {{"dp", 8}}, {{"dp", 16}, {"tp", 8}});
  const int64_t bytes = int64_t{8192} * 8192 * 2;
  CHECK(relay_bound_of(plan) < bytes / 8 * 1'000'000 / 45'000 * 101 / 100);
}

TEST_CASE("targets on ranks of the sources may have all of it by collectives: they pass on nothing") {
  // All of `serve` but its first 8 ranks hold nothing, and a gather may bring them what those have.
  Topology topology = two_levels();
  const Plan beside = sync_of(topology, {{"dp", 8}}, {{"dp", 16}, {"tp", 8}}, 1, 8);
  const Plan among = sync_of(topology, {{"dp", 8}}, {{"dp", 16}, {"tp", 8}}, 1, 0);
  CHECK(relay_bound_of(among) < relay_bound_of(beside));
  CHECK(above_bound(among) >= 1);
}

}  // namespace meshplan
