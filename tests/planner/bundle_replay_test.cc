// What plans of bundles say that ranks have in memory, beside what their replay has; the planner proves every bundle, so that verify counts
// the same by its own code.
#include <doctest/doctest.h>

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

}  // namespace meshplan
