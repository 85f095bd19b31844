// One tensor by itself between two meshes, whose waves have latencies: no plan beats the bound, and
// how close plans come to it.
#include <doctest/doctest.h>

#include "cost/bundle_bound.h"
#include "planner/small_bundle.h"

namespace meshplan {
namespace {

Topology two_slow_levels() {
  Topology topology = hosts_of(8, 10'000);
  topology.levels[1].latency_ns = 25'000;
  return topology;
}

// TP x DP, replicas of a shard TP ranks apart, or side by side.
struct SyncSide {
  int64_t tp = 1;
  int64_t dp = 1;
  bool apart = true;
  [[nodiscard]] Dims dims() const { return apart ? Dims{{"dp", dp}, {"tp", tp}} : Dims{{"tp", tp}, {"dp", dp}}; }
  [[nodiscard]] std::string state() const { return apart ? "RS(0)" : "S(0)R"; }
};

Plan sync_of(const Topology& topology, const SyncSide& src, const SyncSide& dst, int64_t rows = 8192) {
  const MeshTable table = two_roots(src.dims(), dst.dims(), 1024);
  return planned(table, topology, {request_of(table, "w", {rows, 8192}, src.state(), dst.state(), 1)}, {});
}

// As the bound has it, whatever the tensor takes planned for itself.
int64_t raw_bound(const Plan& plan) { return bundle_bounds(plan, plan.bundles.front().request).ps; }

}  // namespace

TEST_CASE("no plan of one tensor beats the bound") {
  for (const bool apart : {true, false}) {
    for (const int64_t src_tp : {1, 4}) {
      for (const int64_t src_dp : {2, 8}) {
        for (const int64_t dst_tp : {1, 2, 8}) {
          for (const int64_t dst_dp : {1, 3, 16}) {
            for (const int64_t rows : {8, 8192}) {
              for (const int64_t hosts : {4, 8}) {
                Topology topology = two_slow_levels();
                topology.levels[0].ranks = hosts;
                const Plan plan = sync_of(topology, {src_tp, src_dp, apart}, {dst_tp, dst_dp, apart}, rows);
                CHECK_MESSAGE(raw_bound(plan) <= plan.bundles.front().totals.predicted_ps,
                              src_tp << " x " << src_dp << " -> " << dst_tp << " x " << dst_dp << " apart " << apart << " rows " << rows);
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("an exchange and an all_gather behind it is as good as pieces: the bound knows both") {
  // 453 us by the law of passing on alone, which lets hosts share while all of it still leaves.
  CHECK(above_bound(sync_of(two_slow_levels(), {1, 16}, {1, 16})) < 1.03);
  CHECK(above_bound(sync_of(two_slow_levels(), {8, 4}, {1, 16})) < 1.03);
  // The gather takes what 32 NICs need for three hosts of four: nothing is faster.
  CHECK(above_bound(sync_of(two_slow_levels(), {2, 8}, {2, 16})) < 1.001);
  CHECK(above_bound(sync_of(two_slow_levels(), {4, 8, false}, {4, 16, false})) < 1.05);
}

TEST_CASE("what crosses hosts is shared in a third wave: the bound counts all three") {
  CHECK(above_bound(sync_of(two_slow_levels(), {1, 8}, {4, 4})) < 1.05);
  CHECK(above_bound(sync_of(two_slow_levels(), {1, 8}, {2, 8})) < 1.05);
  CHECK(above_bound(sync_of(two_slow_levels(), {1, 8}, {1, 16})) < 1.09);
}

TEST_CASE("of ways that would take as long if all overlapped the one whose steps fill its buckets") {
  // By one stop 1,029 us: every rank gathers 15 parts over its NIC. By two 909.
  const Plan plan = sync_of(two_slow_levels(), {2, 2}, {4, 16});
  CHECK(plan.redistributions[0].steps.size() == 3);
  CHECK(above_bound(plan) < 1.03);
}

TEST_CASE("groups over a part of a mesh dim may gather otherwise: then the bound says less") {
  const MeshTable table = two_roots({{"dp", 16}}, {{"dp", 16}}, 1024);
  const std::vector<Request> requests{request_of(table, "w", {8192, 8192}, "R", "R", 1)};
  const auto bound_of = [&](GroupPolicy groups) {
    PlanOptions options;
    options.advice = false;
    options.groups = groups;
    BundleRequest bundle;
    bundle.id = "all";
    bundle.members = {0};
    const PlanOutcome outcome = plan_requests(table, two_slow_levels(), requests, options, "", {bundle});
    REQUIRE(outcome.failures.empty());
    return raw_bound(outcome.plan);
  };
  CHECK(bound_of(GroupPolicy::any) < bound_of(GroupPolicy::declared));
}

}  // namespace meshplan
