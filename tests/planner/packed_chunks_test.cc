// What is packed where the chunks of a reduce_scatter do not lie as the communicator takes them.
#include <doctest/doctest.h>

#include <algorithm>

#include "cost/topology.h"
#include "planner/planner.h"

using namespace meshplan;

TEST_CASE("a reduce_scatter packs in groups whose ranks are out of order, as much as the largest of them moves") {
  struct Case {
    std::vector<int64_t> ranks;
    int64_t columns;
    int64_t staging;  // two chunks of the largest group that packs, in bytes
  };
  // Groups over a: the first of the listed ranks with the third, the second with the fourth.
  for (const Case& c : std::vector<Case>{{{0, 1, 2, 3}, 3, 0},
                                         {{1, 2, 3, 0}, 1, 0},
                                         {{1, 2, 3, 0}, 3, 2 * 8},
                                         {{2, 1, 0, 3}, 3, 2 * 16},
                                         {{3, 2, 1, 0}, 3, 2 * 16},
                                         {{2, 1, 0, 3}, 1, 2 * 8}}) {
    CAPTURE(c.ranks[0]);
    CAPTURE(c.columns);
    MeshTable meshes;
    REQUIRE(add_root(meshes, "mesh", 4, c.ranks, {{"a", 2}, {"b", 2}}).ok());
    Request request;
    request.id = "r";
    request.tensor = {{2, c.columns}, DType::int64};
    request.src = {{{}, {{1, 1, 2}}}, {{{0, 1, 2}, ReduceOp::sum}}};
    request.dst = {{{{0, 1, 2}}, {{1, 1, 2}}}, {}};
    // PyTorch's rules: where packing is priced, all_reduce and a slice may be cheaper.
    PlanOptions options;
    options.planner = PlannerKind::greedy;
    options.rules = Rules::dtensor;
    int64_t before_ps = 0;
    for (const int64_t copy_mb_per_s : {0, 1000}) {
      Topology topology = uniform_topology();
      topology.copy_mb_per_s = copy_mb_per_s;
      // As planned: by the prices, then by the recount.
      const PlanOutcome outcome = plan_requests(meshes, topology, {request}, options, "");
      REQUIRE(outcome.failures.empty());
      const PlannedRedistribution& planned = outcome.plan.redistributions[0];
      REQUIRE(planned.steps.size() == 1);
      REQUIRE(planned.steps[0].op == Op::reduce_scatter);
      const int64_t chunk = (c.columns + 1) / 2 * 8;
      CHECK(planned.steps[0].peak_bytes == 3 * chunk + c.staging);
      // What is packed is written and read twice, and each rank reduces a chunk: a byte takes a nanosecond.
      const int64_t copied = std::max(chunk, 2 * c.staging + c.staging / 2);
      if (copy_mb_per_s == 0)
        before_ps = planned.totals.predicted_ps;
      else
        CHECK(planned.totals.predicted_ps - before_ps == copied * 1'000);
    }
  }
}
