// Members that go in two phases by themselves do so in the rounds of a bundle, in pieces where they
// have chunks.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "planner/small_bundle.h"
#include "replay_host/host.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

void check_replay(const Plan& plan) {
  const Status verified = verify_plan(plan);
  CHECK_MESSAGE(verified.ok(), (verified.ok() ? "" : verified.error().message));
  ReplayOptions options;
  options.threads = 2;
  const auto report = replay_on_host(plan, options);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  CHECK_MESSAGE(all_right(*report), to_text(*report));
}

bool goes_in_two_phases(const PlannedRedistribution& planned) {
  const std::vector<Step>& steps = planned.steps;
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.phases == 2; });
}

// Whether no round of a bundle can be like it.
bool is_for_itself(const PlannedRedistribution& planned) {
  const std::vector<Step>& steps = planned.steps;
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.fetched_by_all || step.laps > 1 || step.far_64ths > 0 || step.at_once > 0; });
}

}  // namespace

TEST_CASE("what is fetched once by a host and shared inside has nothing between steps that staging had to hold") {
  // By a stop half of `embed` lies between two steps, 4/5 of the staging: in 1,364 rounds, 1.08.
  const MeshTable table = two_roots({{"tp", 4}, {"dp", 16}}, {{"dp", 2}}, 96);
  const std::vector<Request> requests{request_of(table, "embed", {800, 10}, "S(0)R", "R", 2),
                                      request_of(table, "w", {10, 10}, "S(0)R", "R", 80)};
  BundleRequest bundle;
  bundle.max_staging_bytes = 10'000;
  const Plan plan = planned(table, hosts_of(8, 0), requests, bundle);
  check_replay(plan);
  CHECK(goes_in_two_phases(plan.redistributions[0]));
  for (const Step& step : std::as_const(plan.redistributions[0].steps).list()) CHECK(step.chunks == 1);
  CHECK(above_bound(plan) < 1.01);
  CHECK(plan.bundles.front().totals.rounds < 200);
}

TEST_CASE("no bundle of like tensors is dearer than they are one by one in two phases and chunks") {
  int in_two_phases = 0;
  for (const Dims& dims : {Dims{{"a", 8}, {"b", 2}}, Dims{{"a", 4}, {"b", 4}}, Dims{{"a", 2}, {"b", 8}}, Dims{{"a", 3}, {"b", 4}}}) {
    const MeshTable table = one_root(dims);
    for (const char* src : {"S(0)R", "S(1)S(0)", "RS(0)", "S(0)[0]S(0)[1]", "S(0)[1]S(0)[0]"}) {
      for (const char* dst : {"RR", "RS(1)", "S(1)R", "S(0)[1]S(0)[0]", "S(1)S(0)"}) {
        const std::vector<Request> requests{request_of(table, "w", {480, 960}, src, dst, 3)};
        PlanOptions options;
        options.advice = false;
        const Plan alone = plan_requests(table, hosts_of(4, 0), requests, options, no_spec).plan;
        if (!goes_in_two_phases(alone.redistributions[0]) || is_for_itself(alone.redistributions[0])) continue;
        CAPTURE(alone.redistributions[0].trace);
        const Plan together = planned(table, hosts_of(4, 0), requests, {});
        const PlannedBundle& made = together.bundles.front();
        CHECK(made.alone_ps == 3 * alone.redistributions[0].totals.predicted_ps);
        CHECK(made.totals.predicted_ps <= made.alone_ps + made.alone_ps / 50);
        check_replay(together);
        ++in_two_phases;
      }
    }
  }
  MESSAGE(in_two_phases << " go in two phases");
  CHECK(in_two_phases >= 10);
}

}  // namespace meshplan
