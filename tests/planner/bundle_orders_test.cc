// Bundles whose members leave the order of their targets to the planner.
#include <doctest/doctest.h>

#include "cost/bundle_bound.h"
#include "planner/small_bundle.h"

namespace meshplan {
namespace {

Topology of_two_levels(int64_t ranks, int64_t inside_mb_per_s, int64_t across_mb_per_s) {
  Topology topology;
  topology.levels = {{"inside", ranks, inside_mb_per_s, 0, 0}, {"across", 1'048'576, across_mb_per_s, 0, 0}};
  return topology;
}

Request in_any_order(Request request) {
  request.any_dst_order = true;
  return request;
}

}  // namespace

TEST_CASE("rounds keep to the order that was chosen, also where they plan anew what they cannot run") {
  // Alone ranks ask holders in other hosts too, which rounds do not: the plan in its place was for another order. Planning ended with
  // exit 70.
  const MeshTable table = two_roots({{"p", 3}}, {{"k", 2}, {"m", 2}}, 1);
  for (const int64_t extent : {6, 10}) {
    const Request request = in_any_order(request_of(table, "w", {extent}, "R", "S(0)[0]S(0)[1]", 1));
    const Plan plan = planned(table, of_two_levels(2, 10, 30), {request}, {});
    CHECK(std::as_const(plan.redistributions[0].steps).back().state == plan.redistributions[0].dst);
  }
}

TEST_CASE("what is bounded is the target in any order: none of them takes less") {
  // One tensor takes least in the order S(1)[1]S(1)[0], ten take less in the other: the bound was that of the first.
  const MeshTable table = one_root({{"a", 3}, {"b", 3}});
  Topology topology = of_two_levels(3, 10'000, 1'250);
  topology.levels[0].latency_ns = 10;
  topology.levels[0].per_peer_ns = 1;
  topology.levels[1].latency_ns = 1000;
  for (const int64_t count : {1, 10, 1000}) {
    Request request = request_of(table, "w", {3, 3}, "S(0)S(1)", "S(1)[0]S(1)[1]", count);
    request.tensor.dtype = DType::float64;
    const Plan any = planned(table, topology, {in_any_order(request)}, {});
    const int64_t bound = bundle_bounds(any, any.bundles.front().request).ps;
    CHECK(bound > 0);
    for (const std::string order : {"S(1)[0]S(1)[1]", "S(1)[1]S(1)[0]"}) {
      CAPTURE(order);
      CAPTURE(count);
      request.dst = state_of(table, 0, order, 2);
      const Plan plan = planned(table, topology, {request}, {});
      CHECK(bound <= bundle_bounds(plan, plan.bundles.front().request).ps);
      CHECK(bound <= plan.bundles.front().totals.predicted_ps);
      CHECK(any.bundles.front().totals.lower_bound_ps <= plan.bundles.front().totals.predicted_ps);
    }
  }
}

}  // namespace meshplan
