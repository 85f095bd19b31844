#include "planner/settle_options.h"

#include <doctest/doctest.h>

#include <string>

using namespace meshplan;

namespace {

GivenOptions given(std::optional<PlannerKind> planner, std::optional<Rules> rules = std::nullopt) {
  GivenOptions options;
  options.planner = planner;
  options.rules = rules;
  return options;
}

std::string settled(const GivenOptions& spec, const GivenOptions& caller) {
  const auto options = settle_options(spec, caller);
  return options ? std::string(to_text(options->planner)) + " " + to_text(options->rules) : options.error().message;
}

constexpr auto greedy = PlannerKind::greedy;
constexpr auto graph = PlannerKind::graph;
constexpr auto optimal = PlannerKind::optimal;
constexpr std::optional<PlannerKind> none = std::nullopt;

}  // namespace

TEST_CASE("a planner and rules: the header's table") {
  CHECK(settled({}, {}) == "optimal native");
  CHECK(settled(given(graph), {}) == "graph dtensor");
  CHECK(settled(given(none, Rules::dtensor), {}) == "greedy dtensor");
  CHECK(settled(given(none, Rules::native), given(greedy)) == "greedy dtensor");
  CHECK(settled(given(graph), given(none, Rules::dtensor)) == "graph dtensor");
  CHECK(settled(given(optimal), given(none, Rules::dtensor)) == "greedy dtensor");
  CHECK(settled(given(graph), given(none, Rules::native)) == "optimal native");
  CHECK(settled(given(none, Rules::dtensor), given(optimal)) == "optimal native");
}

TEST_CASE("one source that contradicts itself is refused by both of its words") {
  CHECK(settled({}, given(greedy, Rules::native)) == "planner greedy does not support the native rules; omit one of the two");
  CHECK(settled(given(optimal, Rules::dtensor), {}) == "planner optimal does not support the dtensor rules; omit one of the two");
}

TEST_CASE("what the caller gives beats the spec, what neither gives has its default") {
  GivenOptions spec;
  spec.groups = GroupPolicy::any;
  spec.max_memory_bytes = 100;
  spec.one_reduction = true;
  spec.world_group = WorldGroup::skip;
  GivenOptions caller;
  caller.max_memory_bytes = -1;
  caller.merge = false;
  caller.audit = true;
  caller.alternatives = 3;
  caller.max_groups = 2;
  caller.ranks_per_host = 8;
  const auto options = settle_options(spec, caller);
  REQUIRE(options);
  CHECK(options->groups == GroupPolicy::any);
  CHECK(options->max_memory_bytes == -1);
  CHECK(options->one_reduction);
  CHECK(options->world_group == WorldGroup::skip);
  CHECK_FALSE(options->merge);
  CHECK(options->audit);
  CHECK(options->alternatives == 3);
  CHECK(options->max_groups == 2);
  CHECK(options->ranks_per_host == 8);
  const PlanOptions defaults = *settle_options({}, {});
  CHECK(defaults.groups == GroupPolicy::declared);
  CHECK(defaults.max_memory_bytes == 0);
  CHECK(defaults.merge);
  CHECK_FALSE(defaults.ranks_per_host);
}

TEST_CASE("a cost model is for the graph planner, and the topology's is what the optimal planner uses anyway") {
  GivenOptions caller = given(graph);
  caller.cost_model = CostModel::unit;
  CHECK(settle_options({}, caller)->cost_model == CostModel::unit);
  caller.planner = optimal;
  CHECK(settled({}, caller).find("not --cost-model unit") != std::string::npos);
  caller.cost_model = CostModel::topology;
  CHECK(settled({}, caller) == "optimal native");
}
