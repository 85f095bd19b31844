// What warnings of PyTorch's rules say of steps that stand behind one another, against these steps.
#include "verify/unmerged_runs.h"

#include <doctest/doctest.h>

#include <functional>

#include "verify/build_plan.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

using test::hand_plan;
using test::table_of;
using verification::obstacle_of;
using verification::unmerged_runs;
using verification::UnmergedRun;

TEST_CASE("a run goes on while steps do the same, sums and averages alike") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}, {"c", 1}});
  const Plan gathers =
      hand_plan(table, {8, 8}, "S(0)[0]S(0)[1]S(0)[2]",
                {{Op::all_gather, {"c"}, "S(0)[0]S(0)[1]R"}, {Op::all_gather, {"b"}, "S(0)RR"}, {Op::all_gather, {"a"}, "RRR"}});
  const std::vector<UnmergedRun> runs = unmerged_runs(gathers.redistributions[0]);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].op == Op::all_gather);
  CHECK(runs[0].mesh_dims == std::vector<int32_t>{2, 1, 0});
  CHECK(runs[0].collectives == 2);
  CHECK(runs[0].ranks == 8);
  CHECK(runs[0].extent == 8);
  // Another tensor dim begins another run, and one step is none.
  CHECK(unmerged_runs(
            hand_plan(table, {8, 8}, "S(0)S(1)R", {{Op::all_gather, {"b"}, "S(0)RR"}, {Op::all_gather, {"a"}, "RRR"}}).redistributions[0])
            .empty());
}

TEST_CASE("gathers merge in descending order, scatters in ascending order and evenly") {
  UnmergedRun run{Op::all_gather, {1, 0}, 2, 8, 0, 30};
  CHECK(obstacle_of(run, false) == WarningKind::missing_flatten);
  CHECK(!obstacle_of(run, true));
  run.mesh_dims = {0, 1};
  CHECK(obstacle_of(run, true) == WarningKind::non_ascending);
  run.op = Op::reduce_scatter;
  CHECK(obstacle_of(run, false) == WarningKind::missing_flatten);
  CHECK(obstacle_of(run, true) == WarningKind::uneven_shape);
  run.extent = 32;
  CHECK(!obstacle_of(run, true));
  run.mesh_dims = {1, 0};
  CHECK(obstacle_of(run, true) == WarningKind::non_ascending);
  run.op = Op::all_reduce;
  CHECK(!obstacle_of(run, true));
}

TEST_CASE("a warning of PyTorch's rules is about steps that are there") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}});
  const Plan unmerged = hand_plan(table, {64, 64}, "S(0)[0]S(0)[1]", {{Op::all_gather, {"b"}, "S(0)R"}, {Op::all_gather, {"a"}, "RR"}});
  const auto said = [&](const std::function<void(Warning&)>& change) -> std::string {
    Plan plan = unmerged;
    PlannedRedistribution& r = plan.redistributions[0];
    r.planner = PlannerKind::graph;
    r.rules = Rules::dtensor;
    Warning& warning = r.warnings.own().emplace_back();
    // clang-format off
    warning = {WarningKind::missing_flatten, {"a", "b"}, Op::all_gather, 2, -5, 1, "a_b", "mesh",
               "2 all_gather steps over a, b would be 1 (a_b)"};
    // clang-format on
    change(warning);
    const Status status = verify_plan(plan);
    return status ? "right" : status.error().message;
  };
  const auto refused = [&](const std::function<void(Warning&)>& change, const std::string& why) {
    const std::string message = said(change);
    CHECK_MESSAGE(message.find(why) != std::string::npos, message);
  };
  CHECK(said([](Warning&) {}) == "right");
  refused([](Warning& w) { w.saves_collectives = -1; }, "saves_collectives is -1, it should be at least 0");
  refused([](Warning& w) { w.saves_collectives = 0; }, "saves_collectives is 0, as one its steps save 1");
  refused([](Warning& w) { w.operations = 3; }, "operations is 3, the mesh dims of the steps are 2");
  refused([](Warning& w) { w.collective = Op::all_reduce; }, "it is about all_reduce, the steps are all_gather");
  refused([](Warning& w) { w.message += ", 3 times"; }, "says 3 at its character 48, which is not a number of what it is about");
  refused(
      [](Warning& w) {
        w.kind = WarningKind::non_ascending;
        w.fix_name.clear();
        w.saves_ns = w.saves_collectives = 0;
      },
      "no steps behind one another are what it is about");
}

}  // namespace
}  // namespace meshplan
