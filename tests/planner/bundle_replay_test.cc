// What plans of bundles say that ranks have in memory, beside what their replay has; the planner proves every bundle, so that verify counts
// the same by its own code.
#include <doctest/doctest.h>

#include <utility>

#include "planner/small_bundle.h"
#include "replay_host/host.h"

namespace meshplan {
namespace {

BundleReport replayed(const Plan& plan) {
  ReplayOptions options;
  options.threads = 2;
  const auto report = replay_on_host(plan, options);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  CHECK_MESSAGE(all_right(*report), to_text(*report));
  REQUIRE(report->bundles.size() == 1);
  CHECK(report->bundles[0].checked > 0);
  return report->bundles[0];
}

}  // namespace

TEST_CASE("a reduction that is pending over a mesh dim of one rank is no step of a bundle") {
  const MeshTable table = one_root({{"dp", 4}, {"tp", 1}});
  const Plan plan = planned(table, uniform_topology(),
                            {request_of(table, "a", {8}, "S(0)R", "RR", 1), request_of(table, "b", {8}, "P(max)R", "S(0)P(max)", 1)}, {});
  for (const Step& step : plan.redistributions[1].steps) CHECK(step.op != Op::to_partial);
  replayed(plan);
}

TEST_CASE("a unit spreads what it needs over no mesh dim on which something stays pending: each rank there has summands of its own") {
  // Hosts of 9 have 3 of a and all of b. By way of a cut over b nobody had what a rank needed: planning ended with exit 70.
  const MeshTable table = one_root({{"a", 6}, {"b", 3}});
  for (const int64_t ranks : {2, 3, 6, 9}) {
    for (const std::string source : {"S(0)P(avg)", "P(sum)P(sum)", "RP(max)"}) {
      const std::string kept = source.substr(source.size() - 6);
      CAPTURE(source);
      CAPTURE(ranks);
      replayed(
          planned(table, hosts_of(ranks, 0), {request_of(table, "g", {14, 9}, source, (source[0] == 'R' ? "S(1)" : "R") + kept, 3)}, {}));
    }
  }
}

TEST_CASE("views of the same ranks that gather together stage once") {
  MeshTable table = one_root({{"dp", 8}, {"tp", 1}});
  const Request root = request_of(table, "a", {5003, 16}, "S(0)R", "RR", 1);
  REQUIRE(add_slice(table, "d", "m", {"dp"}).ok());
  Request view = root;
  view.id = "b";
  view.src_mesh = view.dst_mesh = 1;
  view.src = state_of(table, 1, "S(0)", 2);
  view.dst = state_of(table, 1, "R", 2);
  const Plan plan = planned(table, uniform_topology(), {root, view}, {});
  REQUIRE(plan.bundles[0].rounds.size() == 1);
  CHECK(plan.bundles[0].rounds[0].parts.size() == 2);
  CHECK(plan.bundles[0].totals.staging_bytes == plan.bundles[0].rounds[0].staging_bytes);
  CHECK(replayed(plan).staging_bytes <= plan.bundles[0].totals.staging_bytes);
}

TEST_CASE("members of local steps only run in one go: nothing lies between, as planned") {
  const MeshTable table = one_root({{"a", 2}, {"b", 4}});
  const auto uneven = [&](const std::string& id, const std::string& src, const std::string& dst) {
    return request_of(table, id, {66, 13}, src, dst, 3);
  };
  BundleRequest bundle;
  bundle.max_staging_bytes = 64;
  const Plan plan = planned(table, uniform_topology(),
                            {uneven("cut twice", "RR", "S(0)S(1)"), uneven("cut one dim twice", "RR", "S(0)[0]S(0)[1]"),
                             uneven("cut, then pending", "RR", "S(0)P(sum)"), uneven("pending twice", "RR", "P(sum)P(avg)"),
                             uneven("a pending shard", "S(0)R", "P(sum)P(sum)"), uneven("pending as it is", "RR", "P(max)P(max)")},
                            bundle);
  size_t chains = 0;
  for (const PlannedRedistribution& r : plan.redistributions) {
    for (const Step& step : r.steps) CHECK(is_local(step.op));
    chains += std::as_const(r.steps).size() > 1 ? 1 : 0;
  }
  CHECK(chains >= 4);
  CHECK(plan.bundles[0].totals.staging_bytes == 0);
  const BundleReport report = replayed(plan);
  CHECK(report.staging_bytes == 0);
  CHECK(report.peak_bytes == plan.bundles[0].totals.peak_bytes);
}

TEST_CASE("chunks that a communicator takes in another order are packed, counted in the bundle and in the step") {
  const auto scattered = [](const Dims& dims, const std::vector<int64_t>& ranks, const std::string& src, const std::string& dst) {
    MeshTable table = one_root(dims, ranks);
    if (dims.size() > 1) REQUIRE(add_flatten(table, "", "m", {"a", "b"}).ok());
    const Request request = request_of(one_root(dims, ranks), "g", {72, 60}, src, dst, 2);
    const Plan plan = planned(table, uniform_topology(), {request}, {});
    REQUIRE(std::as_const(plan.redistributions[0].steps).size() == 1);
    CHECK(plan.redistributions[0].steps[0].op == Op::reduce_scatter);
    const BundleReport report = replayed(plan);
    CHECK(report.staging_bytes == plan.bundles[0].totals.staging_bytes);
    CHECK(report.peak_bytes == plan.bundles[0].totals.peak_bytes);
    // One tensor packs what it has before.
    int64_t ends = 72 * 60 * 2;
    for (const SubAxis& sub_axis : plan.redistributions[0].steps[0].mesh_dims) ends /= sub_axis.size;
    CHECK(plan.redistributions[0].totals.peak_bytes - ends - 72 * 60 * 2 == report.staging_bytes / 2);
    return report.staging_bytes > 0;
  };
  CHECK_FALSE(scattered({{"a", 4}}, {}, "P(sum)", "S(0)"));
  CHECK_FALSE(scattered({{"a", 4}}, {2, 5, 6, 9}, "P(sum)", "S(0)"));
  CHECK(scattered({{"a", 4}}, {3, 2, 1, 0}, "P(sum)", "S(0)"));
  CHECK(scattered({{"a", 4}}, {1, 0, 2, 3}, "P(sum)", "S(0)"));
  CHECK_FALSE(scattered({{"a", 2}, {"b", 3}}, {}, "P(sum)P(sum)", "S(0)[0]S(0)[1]"));
  CHECK(scattered({{"a", 2}, {"b", 3}}, {}, "P(sum)P(sum)", "S(0)[1]S(0)[0]"));
  // Groups of b ascend, those of a do not.
  CHECK_FALSE(scattered({{"a", 2}, {"b", 3}}, {3, 4, 5, 0, 1, 2}, "RP(sum)", "RS(0)"));
  CHECK(scattered({{"a", 2}, {"b", 3}}, {3, 4, 5, 0, 1, 2}, "P(sum)R", "S(0)R"));
}

}  // namespace meshplan
