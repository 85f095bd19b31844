// Every recorded redistribution, under every planner that can execute it, moves every element to where it belongs; also where PyTorch's own
// data was wrong or PyTorch failed.
#include <doctest/doctest.h>

#include "replay_host/host.h"
#include "vector_plans.h"

using namespace meshplan;

TEST_CASE("recorded redistributions replay with every element right") {
  const auto plans = test::vector_plans(16);
  CHECK(plans.size() > 600);
  for (const test::VectorPlan& p : plans) {
    CAPTURE(p.name);
    for (bool shrink : {false, true}) {
      ReplayOptions options;
      options.threads = 1;
      options.shrink = shrink;
      auto report = replay_on_host(p.plan, options);
      REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
      CHECK_MESSAGE(all_right(*report), to_text(*report));
    }
  }
}
