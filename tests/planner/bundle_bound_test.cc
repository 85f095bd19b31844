// What sets of ranks take at least in whole bundles, where exchanges are slower than collectives.
#include "cost/bundle_bound.h"

#include <doctest/doctest.h>

#include "planner/small_bundle.h"

namespace meshplan {
namespace {

Topology slow_exchanges(int64_t ranks, int64_t percent) {
  Topology topology = hosts_of(ranks, 0);
  for (TopologyLevel& level : topology.levels) level.exchange_percent = percent;
  return topology;
}

int64_t bound_of(const Plan& plan) { return bundle_bounds(plan, plan.bundles.front().request).ps; }

// Picoseconds of the links across hosts.
int64_t across_ps(int64_t bytes, int64_t hundredths_of_links) { return bytes * 1'000'000 / (hundredths_of_links * 450); }

}  // namespace

TEST_CASE("members for different ranks add up on none of them") {
  // 100 B to rank 4 alone and 100 B to rank 5 alone: no rank must receive 200 B.
  MeshTable table;
  REQUIRE(add_root(table, "train", 4, {}, {{"a", 4}}).ok());
  REQUIRE(add_root(table, "one", 1, {4}, {{"b", 1}}).ok());
  REQUIRE(add_root(table, "other", 1, {5}, {{"c", 1}}).ok());
  Request to_one = request_of(table, "one", {50}, "S(0)", "R", 1);
  Request to_other = to_one;
  to_other.id = "other";
  to_other.dst_mesh = 2;
  const Plan plan = planned(table, hosts_of(8, 0), {to_one, to_other}, {});
  CHECK(plan.redistributions[0].totals.lower_bound_bytes == 100);
  CHECK(plan.bundles.front().totals.wire_bytes == 100);
  CHECK(plan.totals.lower_bound_bytes == 100);
}

TEST_CASE("members for the same ranks add up, each as often as it happens") {
  const MeshTable table = two_roots({{"fsdp", 4}}, {{"dp", 2}}, 4);
  const std::vector<Request> requests{request_of(table, "v", {50}, "S(0)", "R", 3), request_of(table, "w", {40}, "S(0)", "S(0)", 2)};
  const Plan plan = planned(table, hosts_of(8, 0), requests, {});
  CHECK(plan.totals.lower_bound_bytes == 3 * 100 + 2 * 40);
}

TEST_CASE("what one host alone wants comes by exchanges: a gather would bring it to all others") {
  const MeshTable table = one_root({{"fsdp", 6}, {"tp", 2}});
  const std::vector<Request> requests{request_of(table, "w", {12, 600, 600}, "S(1)S(2)", "S(0)[0]S(0)[1]", 8)};
  const Plan plan = planned(table, slow_exchanges(2, 80), requests, {});
  const int64_t of_a_rank = int64_t{600} * 600 * 2 * 8;
  CHECK(bound_of(plan) == across_ps(of_a_rank / 6 * 5, 80) + 1);
  CHECK(above_bound(plan) < 1.25);
}

TEST_CASE("of two hosts a gather brings nothing where nobody wants it") {
  const MeshTable table = one_root({{"fsdp", 2}, {"tp", 2}});
  const Plan plan = planned(table, slow_exchanges(2, 80), {request_of(table, "w", {4, 600, 600}, "S(1)S(2)", "S(0)[0]S(0)[1]", 8)}, {});
  CHECK(bound_of(plan) == across_ps(int64_t{600} * 600 * 2 * 8 / 2, 100));
}

TEST_CASE("hosts that keep more of what they want do not hide what others take") {
  // Of six hosts that load what eight saved the first keeps three quarters, the last three nothing.
  const MeshTable table = two_roots({{"fsdp", 8}, {"tp", 2}}, {{"fsdp", 6}, {"tp", 2}}, 0);
  const Plan plan = planned(table, slow_exchanges(2, 80), {request_of(table, "w", {960, 960}, "S(0)[0]S(0)[1]", "S(0)[0]S(0)[1]", 8)}, {});
  CHECK(bound_of(plan) == across_ps(int64_t{960} * 960 * 2 * 8 / 12, 80) + 1);
}

TEST_CASE("into a host that has all targets only what its sources gather comes faster than exchanges") {
  // Ranks 6 and 7 hold a quarter, 8 to 11 want all of it: the rest comes over four links at 80 % and
  // two at the full rate.
  const MeshTable table = two_roots({{"fsdp", 8}}, {{"dp", 4}}, 8);
  const Plan plan = planned(table, slow_exchanges(6, 80), {request_of(table, "w", {3840, 3840}, "S(0)", "R", 8)}, {});
  const int64_t bytes = int64_t{3840} * 3840 * 2 * 8;
  CHECK(bound_of(plan) == across_ps(bytes / 4 * 3, 4 * 80 + 2 * 100) + 1);
}

TEST_CASE("collectives bring no more into a host than their ranks outside can give") {
  // Rank 5 is the only one of the targets outside of the second host, whose five want all of it.
  const MeshTable table = two_roots({{"fsdp", 5}}, {{"dp", 6}}, 5);
  const Plan plan = planned(table, slow_exchanges(6, 80), {request_of(table, "w", {3840, 3840}, "S(0)", "R", 8)}, {});
  const int64_t bytes = int64_t{3840} * 3840 * 2 * 8;
  CHECK(bound_of(plan) == across_ps(bytes, 5 * 80 + 20) + 1);
}

TEST_CASE("no plan of a bundle on one mesh takes less than its bound") {
  const std::vector<std::string> states{"RR", "S(0)R", "RS(0)", "S(1)R", "S(0)S(1)", "S(1)S(0)", "S(0)[0]S(0)[1]", "S(1)[0]S(1)[1]"};
  for (const Dims& dims : {Dims{{"a", 2}, {"b", 4}}, Dims{{"a", 6}, {"b", 2}}, Dims{{"a", 3}, {"b", 3}}}) {
    const MeshTable table = one_root(dims);
    for (const int64_t hosts : {2, 3, 4}) {
      for (const std::string& from : states) {
        for (const std::string& to : states) {
          const Plan plan = planned(table, slow_exchanges(hosts, 50), {request_of(table, "w", {240, 240}, from, to, 3)}, {});
          INFO(ranks_in(dims), " ranks, hosts of ", hosts, ", ", from, " -> ", to);
          CHECK(bound_of(plan) <= plan.bundles.front().totals.predicted_ps);
        }
      }
    }
  }
}

TEST_CASE("no plan of a bundle takes less than its bound") {
  const std::vector<Dims> sources{{{"dp", 2}}, {{"dp", 5}}, {{"dp", 2}, {"tp", 3}}, {{"dp", 4}, {"tp", 2}}};
  const std::vector<Dims> targets{{{"dp", 4}}, {{"dp", 7}}, {{"dp", 3}, {"tp", 2}}, {{"dp", 2}, {"tp", 4}}};
  for (const Dims& src : sources) {
    for (const Dims& dst : targets) {
      for (const int64_t hosts : {4, 5, 9}) {
        for (const int64_t first : {ranks_in(src), ranks_in(src) / 2, int64_t{0}}) {
          const MeshTable table = two_roots(src, dst, first);
          const std::string from = src.size() == 1 ? "S(0)" : "S(0)S(1)";
          const std::string to = dst.size() == 1 ? "R" : "RS(1)";
          const Plan plan = planned(table, slow_exchanges(hosts, 50), {request_of(table, "w", {840, 840}, from, to, 4)}, {});
          INFO(ranks_in(src), " -> ", ranks_in(dst), " from ", first, ", hosts of ", hosts);
          CHECK(bound_of(plan) <= plan.bundles.front().totals.predicted_ps);
        }
      }
    }
  }
}

}  // namespace meshplan
