// Bundles whose copies gather what each fetched a part of.
#include <doctest/doctest.h>

#include "planner/small_bundle.h"

namespace meshplan {

TEST_CASE("copies on many hosts gather what they fetched a part of, bucket by bucket") {
  // Exchanges reach 4/5 of the NICs, an all_gather all of them: of 8 copies each fetches an eighth.
  Topology slower = hosts_of(8, 1);
  slower.levels[1].exchange_percent = 80;
  const MeshTable table = two_roots({{"fsdp", 8}, {"tp", 8}}, {{"dp", 8}, {"tp", 8}}, 64);
  const std::vector<Request> requests{
      request_of(table, "w", {4096, 4096}, "S(0)[0]S(0)[1]", "RS(0)", 12),
      request_of(table, "v", {8192, 1024}, "S(0)S(1)", "RS(1)", 3),
      request_of(table, "norm", {4096}, "S(0)[0]S(0)[1]", "RR", 20)};
  const auto fetched_before_all_was = [](const PlannedBundle& bundle) {
    int64_t exchanges = 0;
    for (size_t r = 0; r + 1 < bundle.rounds.size(); ++r) {
      const bool behind = bundle.rounds[r].op == Op::all_gather;
      exchanges += behind && bundle.rounds[r + 1].op == Op::exchange ? 1 : 0;
    }
    return exchanges;
  };
  const Plan plan = planned(table, slower, requests, {});
  CHECK(above_bound(plan) < 1.05);  // exchanges alone would take 1.25 times the bound
  CHECK(fetched_before_all_was(plan.bundles.front()) == 0);
  // Less staging than one bucket takes: fetched and shared a bucket after the other.
  BundleRequest bundle;
  bundle.max_staging_bytes = plan.bundles.front().totals.staging_bytes / 2;
  const Plan in_buckets = planned(table, slower, requests, bundle);
  CHECK(in_buckets.bundles.front().totals.staging_bytes <= bundle.max_staging_bytes);
  CHECK(above_bound(in_buckets) < 1.05);
  CHECK(fetched_before_all_was(in_buckets.bundles.front()) > 0);
}

}  // namespace meshplan
