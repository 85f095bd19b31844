#include "tensor/request.h"

namespace meshplan {

const char* to_text(PlannerKind planner) {
  switch (planner) {
    case PlannerKind::greedy:
      return "greedy";
    case PlannerKind::graph:
      return "graph";
    case PlannerKind::optimal:
      return "optimal";
  }
  return "?";
}

const char* to_text(Rules rules) { return rules == Rules::dtensor ? "dtensor" : "native"; }

const char* to_text(GroupPolicy groups) {
  return groups == GroupPolicy::declared ? "declared" : "any";
}

const char* to_text(WorldGroup world_group) {
  return world_group == WorldGroup::init ? "init" : "skip";
}

const char* to_text(CostModel model) {
  switch (model) {
    case CostModel::topology:
      return "topology";
    case CostModel::dtensor:
      return "dtensor";
    case CostModel::unit:
      return "unit";
  }
  return "?";
}

std::optional<PlannerKind> parse_planner(std::string_view text) {
  for (PlannerKind kind : {PlannerKind::greedy, PlannerKind::graph, PlannerKind::optimal}) {
    if (text == to_text(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<Rules> parse_rules(std::string_view text) {
  if (text == "dtensor") return Rules::dtensor;
  if (text == "native") return Rules::native;
  return std::nullopt;
}

std::optional<GroupPolicy> parse_group_policy(std::string_view text) {
  if (text == "declared") return GroupPolicy::declared;
  if (text == "any") return GroupPolicy::any;
  return std::nullopt;
}

std::optional<WorldGroup> parse_world_group(std::string_view text) {
  if (text == "init") return WorldGroup::init;
  if (text == "skip") return WorldGroup::skip;
  return std::nullopt;
}

std::optional<CostModel> parse_cost_model(std::string_view text) {
  for (CostModel model : {CostModel::topology, CostModel::dtensor, CostModel::unit}) {
    if (text == to_text(model)) return model;
  }
  return std::nullopt;
}

}  // namespace meshplan
