// Every recorded redistribution, under every planner that can execute it, moves every element to where it belongs; also where PyTorch's own
// data was wrong or PyTorch failed.
#include <doctest/doctest.h>

#include "replay_host/host.h"
#include "vector_plans.h"

using namespace meshplan;

namespace {

void replay_all(const std::vector<test::VectorPlan>& plans, size_t at_least, const std::vector<bool>& shrinks) {
  CHECK(plans.size() >= at_least);
  for (const test::VectorPlan& p : plans) {
    CAPTURE(p.name);
    for (bool shrink : shrinks) {
      ReplayOptions options;
      options.threads = 1;
      options.shrink = shrink;
      auto report = replay_on_host(p.plan, options);
      REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
      CHECK_MESSAGE(all_right(*report), to_text(*report));
    }
  }
}

}  // namespace

TEST_CASE("recorded redistributions replay with every element right") {
  replay_all(test::vector_plans(16), 601, {false, true});
  replay_all(test::vector_plans(8), 601, {true});
}

// 73 cases and 44 redistributions, each under three planners where they apply.
TEST_CASE("reshards that others were measured on replay with every element right") {
  replay_all(test::reshard_plans(64), 190, {false});
  replay_all(test::reshard_plans(8), 190, {false});
}

TEST_CASE("captured training steps replay with every element right, at their own size of mesh and on 8 ranks") {
  replay_all(test::workload_plans(64), 130, {true});
  replay_all(test::workload_plans(8), 130, {true});
}
