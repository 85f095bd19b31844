// The recorded redistributions (testdata/vectors/redistribute.json) as plans, on their own mesh or one shrunk to fit few ranks.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "planner/torch_case.h"

namespace meshplan::test {

// The case with mesh sizes halved (odd ones divided by their least factor), outermost first, until the mesh has at most `ranks` ranks.
inline nlohmann::json shrunk_case(nlohmann::json json, int64_t ranks) {
  auto sizes = json.at("mesh").at("shape").get<std::vector<int64_t>>();
  auto product = [&] {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  };
  while (product() > ranks) {
    auto largest = std::max_element(sizes.begin(), sizes.end());
    int64_t factor = 2;
    while (*largest % factor != 0) ++factor;
    *largest /= factor;
  }
  json["mesh"]["shape"] = sizes;
  return json;
}

struct VectorPlan {
  std::string name;
  Plan plan;
};

// Every case under greedy (where it applies), graph and optimal; those that no planner can execute are left out.
inline std::vector<VectorPlan> vector_plans(int64_t ranks, size_t every = 1) {
  std::vector<VectorPlan> out;
  const nlohmann::json vectors = read_vectors("redistribute.json");
  size_t number = 0;
  for (const auto& json : vectors.at("cases")) {
    if (number++ % every != 0) continue;
    const TorchCase c = torch_case(shrunk_case(json, ranks));
    for (PlannerKind planner : {PlannerKind::greedy, PlannerKind::graph, PlannerKind::optimal}) {
      if (planner == PlannerKind::greedy && !json.at("torch").contains("greedy")) continue;
      PlanOptions options;
      options.planner = planner;
      options.rules = planner == PlannerKind::optimal ? Rules::native : Rules::dtensor;
      PlanOutcome outcome = plan_requests(c.meshes, uniform_topology(), {c.request}, options, "");
      if (!outcome.failures.empty()) continue;
      std::string name = "case ";
      name += std::to_string(number - 1);
      name += " ";
      name += to_text(planner);
      outcome.plan.digest = name;
      out.push_back({std::move(name), std::move(outcome.plan)});
    }
  }
  return out;
}

}  // namespace meshplan::test
