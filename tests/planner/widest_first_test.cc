// A question whose plan with every set of mesh dims is known before the one on the declared sets.
#include "planner/widest_first.h"

#include <doctest/doctest.h>

#include "cost/topology.h"
#include "one_mesh.h"

using namespace meshplan;

// The work ends the search on the declared sets; the one with every set declared ends by itself before.
// On every group the plan takes no more than on every set.
TEST_CASE("what a plan with every set takes bounds those on the declared ones") {
  const test::OneMesh world({4, 2, 6}, topology_preset("h100").value());
  const Request request = world.request({1, 8192, 5120}, "S(0)RP(sum)", "RS(1)R");
  PlanOptions options;
  const Plan declared = world.plan(request, options);
  options.groups = GroupPolicy::any;
  const Plan any = world.plan(request, options);
  const PlannedRedistribution& asked = declared.redistributions.at(0);
  const PlannedRedistribution& freely = any.redistributions.at(0);
  CHECK_FALSE(asked.shortcuts.none());
  CHECK(freely.shortcuts.none());
  CHECK(freely.totals.predicted_ps == 1'151'503'418);
  const int64_t least_ps = asked.totals.predicted_ps - asked.proven_gap_ps;
  CHECK(least_ps == freely.totals.predicted_ps - 2'000);  // what joining sums counts at
}
