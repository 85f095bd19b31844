#include "tensor/request.h"

#include "base/enum_names.h"

namespace meshplan {

namespace {

constexpr EnumNames<PlannerKind, 3> planner_names{{"greedy", "graph", "optimal"}};
constexpr EnumNames<Rules, 2> rules_names{{"dtensor", "native"}};
constexpr EnumNames<GroupPolicy, 2> group_names{{"declared", "any"}};
constexpr EnumNames<WorldGroup, 2> world_group_names{{"init", "skip"}};
constexpr EnumNames<CostModel, 3> cost_model_names{{"topology", "dtensor", "unit"}};

}  // namespace

const char* to_text(PlannerKind planner) { return planner_names[planner]; }
const char* to_text(Rules rules) { return rules_names[rules]; }
const char* to_text(GroupPolicy groups) { return group_names[groups]; }
const char* to_text(WorldGroup world_group) { return world_group_names[world_group]; }
const char* to_text(CostModel model) { return cost_model_names[model]; }

std::optional<PlannerKind> parse_planner(std::string_view text) {
  return planner_names.parse(text);
}
std::optional<Rules> parse_rules(std::string_view text) { return rules_names.parse(text); }
std::optional<GroupPolicy> parse_group_policy(std::string_view text) {
  return group_names.parse(text);
}
std::optional<WorldGroup> parse_world_group(std::string_view text) {
  return world_group_names.parse(text);
}
std::optional<CostModel> parse_cost_model(std::string_view text) {
  return cost_model_names.parse(text);
}

}  // namespace meshplan
