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

}  // namespace meshplan
