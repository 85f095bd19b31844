// Bundles whose target mesh is cut unevenly by hosts.
#include <doctest/doctest.h>

#include "planner/small_bundle.h"

namespace meshplan {

TEST_CASE("hosts that cut the copies unevenly fetch shardings that each of them has whole") {
  // Of 18 copies hosts of 9 have 4, 9 and 5: cut over 3 that follow one another each host has all
  // parts. The least host fetches a third of the tensor a rank; four ranks need a quarter at least.
  // Cut over all 18, a rank would fetch all but what its own host's ranks have.
  const MeshTable table = two_roots({{"dp", 18}}, {{"dp", 18}}, 41);
  const std::vector<Request> requests{request_of(table, "w", {3600, 3600}, "S(0)", "R", 12)};
  const Plan plan = planned(table, hosts_of(9, 0), requests, {});
  CHECK(above_bound(plan) < 1.36);
}

TEST_CASE("a family that pipelines comes before the plan of the tensor for itself") {
  // What the tensor would do by itself, one all_gather behind the other as exchanges, is as short
  // by bytes, but its three steps take no buckets as small.
  const MeshTable table = two_roots({{"dp", 4}, {"tp", 1}}, {{"dp", 4}, {"tp", 8}}, 1024);
  const std::vector<Request> requests{request_of(table, "w", {8192, 8192}, "RS(0)", "RS(0)", 1)};
  CHECK(above_bound(planned(table, hosts_of(8, 0), requests, {})) < 1.02);
}

TEST_CASE("where peers cost most copies are cut as the source is") {
  Topology slow = hosts_of(9, 2000);
  slow.levels[1].per_peer_ns = 14'000;
  // Parts along the longer dim come from all 12 ranks: 1.6 of the bound.
  const MeshTable table = two_roots({{"dp", 12}}, {{"dp", 18}}, 45);
  const std::vector<Request> requests{request_of(table, "w", {3600, 7200}, "S(0)", "R", 12)};
  const Plan plan = planned(table, slow, requests, {});
  CHECK(plan.bundles.front().rounds.front().messages <= 4);
  CHECK(above_bound(plan) < 1.5);
}

TEST_CASE("where hosts have unequal numbers of copies, peers are few in two phases") {
  Topology slow = hosts_of(9, 2000);
  slow.levels[1].per_peer_ns = 14'000;
  // By parts that every host has, one behind the other: 1.63.
  const MeshTable table = two_roots({{"dp", 36}}, {{"dp", 18}}, 41);
  const std::vector<Request> requests{request_of(table, "w", {3600, 7200}, "S(0)", "R", 12)};
  CHECK(above_bound(planned(table, slow, requests, {})) < 1.25);
}

TEST_CASE("kinds go by one family of stops, of which some kinds have fewer") {
  // The norm's boxes are the same however the host's ranks share them.
  const MeshTable table = two_roots({{"fsdp", 8}, {"tp", 2}}, {{"dp", 12}, {"tp", 2}}, 20);
  const std::vector<Request> requests{request_of(table, "w", {4096, 4096}, "S(0)[0]S(0)[1]", "RS(0)", 12),
                                      request_of(table, "v", {8192, 1024}, "S(0)S(1)", "RS(1)", 3),
                                      request_of(table, "norm", {4096}, "S(0)R", "RR", 20)};
  CHECK(above_bound(planned(table, hosts_of(8, 0), requests, {})) < 1.02);  // 1.84 over all of them
}

TEST_CASE("what the ranks of a host lack together is fetched once, however many copies it has") {
  // Of 5 copies hosts of 6 have 2 and 3: cut over 2 or 3 or 5, ranks fetch parts that their hosts
  // have. Each of the 4 ranks of the first host needs a half of its shard at least.
  const MeshTable table = two_roots({{"fsdp", 12}}, {{"dp", 5}, {"tp", 2}}, 14);
  const std::vector<Request> requests{request_of(table, "w", {3600, 3600}, "S(0)", "RS(0)", 12),
                                      request_of(table, "v", {7200, 60}, "S(1)", "RS(1)", 4),
                                      request_of(table, "norm", {600}, "S(0)", "RR", 4)};
  const Plan plan = planned(table, hosts_of(6, 0), requests, {});
  CHECK(above_bound(plan) < 1.1);
  CHECK(std::as_const(plan.redistributions[0].steps).back().phases == 2);
  // A tensor larger than its bucket goes in pieces: fetched and passed on in turn.
  const std::vector<Request> one{request_of(table, "w", {3600, 3600}, "S(0)", "RS(0)", 1)};
  const Plan cut = planned(table, hosts_of(6, 0), one, {});
  CHECK(above_bound(cut) < 1.1);
  const BundleRound& first = cut.bundles.front().rounds.front();
  CHECK(first.parts.front().pieces > 2);
}

TEST_CASE("no way of a bundle passes a state that is larger than both its ends, unless it may") {
  // By way of S(1)S(2) a rank would have 430 rows of 4,096; at its ends 396 and 387. Planning ended with exit 70.
  const MeshTable table = one_root({{"fsdp", 12}, {"tp", 8}});
  const std::vector<Request> requests{request_of(table, "small", {4096, 1024, 36}, "S(1)[0]S(1)[1]", "S(0)[0]S(0)[1]", 1),
                                      request_of(table, "large", {36, 14336, 4096}, "S(1)[0]S(1)[1]", "S(0)[0]S(0)[1]", 1)};
  for (const int64_t limit : {0, -1}) {
    PlanOptions options;
    options.max_memory_bytes = limit;
    const Plan plan = planned(table, *topology_preset("h100"), requests, {}, options);
    CHECK(plan.bundles.front().tensors == 2);
  }
}

}  // namespace meshplan
