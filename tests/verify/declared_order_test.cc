// Which plans may run on a group that lists its ranks in another order than the dims of the step: those of the native rules, in a collective
// on several mesh dims, of the same ranks.
#include <doctest/doctest.h>

#include "verify/build_plan.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

using test::hand_plan;
using test::table_of;

std::string verdict_on(const Plan& plan) {
  const Status status = verify_plan(plan);
  if (status) return "right";
  CHECK(status.error().fault == Fault::wrong_data);
  return status.error().message;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The only group of the plan is that of other dims.
Plan on_group_of(Plan plan, const std::vector<std::string>& dims, const std::string& layout, const std::string& mesh = "mesh") {
  PlanGroup& group = plan.groups.at(0);
  group.mesh = mesh;
  group.dims = dims;
  group.layout = *parse_layout(layout);
  return plan;
}

Plan reduced(const MeshTable& table, const std::string& from) {
  const std::string to = from == "P(sum)P(sum)" ? "RR" : "RRR";
  return hand_plan(table, {8}, from, {{Op::all_reduce, {"a", "b"}, to, ReduceOp::sum}});
}

void by_rules(Plan& plan, const std::string& unmerged) {
  PlannedRedistribution& r = plan.redistributions[0];
  r.planner = PlannerKind::graph;
  r.rules = Rules::dtensor;
  r.unmerged_trace = unmerged;
}

}  // namespace

TEST_CASE("a collective on several mesh dims may run on their ranks in another order under the native rules alone") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}});
  Plan plan = reduced(table, "P(sum)P(sum)");
  REQUIRE(verdict_on(plan) == "right");
  CHECK(verdict_on(on_group_of(plan, {"b", "a"}, "(4,2):(1,4)")) == "right");
  by_rules(plan, "P(sum)P(sum)->RP(sum)->RR");
  REQUIRE(verdict_on(plan) == "right");
  CHECK(has(verdict_on(on_group_of(plan, {"b", "a"}, "(4,2):(1,4)")),
            "group 'a_b' has layout (4,2):(1,4) where the ranks of mesh_dims have 8:1"));
}

TEST_CASE("not on as many other ranks") {
  const Plan plan = reduced(table_of({{"a", 2}, {"b", 2}, {"c", 2}}), "P(sum)P(sum)R");
  REQUIRE(verdict_on(plan) == "right");
  CHECK(verdict_on(on_group_of(plan, {"b", "a"}, "(2,2):(2,4)")) == "right");
  CHECK(has(verdict_on(on_group_of(plan, {"c", "b"}, "(2,2):(1,2)")),
            "group 'a_b' has layout (2,2):(1,2) where the ranks of mesh_dims have 4:2"));
  CHECK(has(verdict_on(on_group_of(plan, {"c", "a"}, "(2,2):(1,4)")),
            "group 'a_b' has layout (2,2):(1,4) where the ranks of mesh_dims have 4:2"));
}

TEST_CASE("no exchange, and no collective on one mesh dim") {
  const Plan exchanged = hand_plan(table_of({{"a", 2}, {"b", 4}}), {8, 8}, "S(0)R", {{Op::exchange, {}, "S(1)R"}});
  REQUIRE(verdict_on(exchanged) == "right");
  CHECK(has(verdict_on(on_group_of(exchanged, {"b", "a"}, "(4,2):(1,4)")), "has layout (4,2):(1,4) where the ranks of mesh_dims have 8:1"));
  MeshTable table = table_of({{"w", 8}});
  REQUIRE(add_unflatten(table, "v", "mesh", "w", {2, 4}, {"a", "b"}).ok());
  REQUIRE(add_flatten(table, "ba", "v", {"b", "a"}).ok());
  const Plan gathered = hand_plan(table, {8}, "S(0)", {{Op::all_gather, {"w"}, "R"}});
  REQUIRE(verdict_on(gathered) == "right");
  CHECK(
      has(verdict_on(on_group_of(gathered, {"b_a"}, "(4,2):(1,4)", "ba")), "has layout (4,2):(1,4) where the ranks of mesh_dims have 8:1"));
}

TEST_CASE("where only declared groups are allowed one in another order is declared as it is") {
  for (const bool declares : {false, true}) {
    MeshTable table = table_of({{"a", 2}, {"b", 4}});
    if (declares) REQUIRE(declare_listed(table, "mesh", {"b", "a"}).ok());
    Plan plan = on_group_of(reduced(table, "P(sum)P(sum)"), {"b", "a"}, "(4,2):(1,4)");
    plan.groups[0].declared = declares;
    plan.options.groups = GroupPolicy::declared;
    CHECK(has(verdict_on(plan), declares ? "right" : "group 'a_b', which no mesh declares"));
  }
}

TEST_CASE("no flatten is missing that is declared in another order, but by PyTorch's rules") {
  MeshTable table = table_of({{"a", 2}, {"b", 4}});
  REQUIRE(declare_listed(table, "mesh", {"b", "a"}).ok());
  Plan plan = hand_plan(table, {8, 8}, "S(0)[0]S(0)[1]", {{Op::all_gather, {"b"}, "S(0)R"}, {Op::all_gather, {"a"}, "RR"}});
  REQUIRE(verdict_on(plan) == "right");
  const Warning warning{WarningKind::missing_flatten,           {"a", "b"}, Op::all_gather, 2, 0, 1, "a_b", "mesh",
                        "one all_gather over a, b: declare a_b"};
  plan.redistributions[0].warnings.own().push_back(warning);
  CHECK(has(verdict_on(plan), "its warning missing_flatten over a, b: these dims are flattened already"));
  by_rules(plan, "S(0)[0]S(0)[1]->S(0)R->RR");
  CHECK(verdict_on(plan) == "right");
}

}  // namespace meshplan
