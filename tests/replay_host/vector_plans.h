// Recorded redistributions as plans, on their own mesh or one shrunk to fit few ranks: PyTorch's cases
// (testdata/vectors/redistribute.json), the reshards that others were measured on (reshard.json) and the captured training steps
// (testdata/workloads/captured.json).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "torch_rules/torch_case.h"

namespace meshplan::test {

// The case with mesh sizes halved (odd ones divided by their least factor), largest first, until the mesh has at most `ranks` ranks.
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

// Plans of one case under greedy (where it applies), graph and optimal; planners that can execute nothing there are left out.
inline void add_plans(std::vector<VectorPlan>& out, const std::string& name, const nlohmann::json& json, bool greedy) {
  const TorchCase c = torch_case(json);
  for (PlannerKind planner : {PlannerKind::greedy, PlannerKind::graph, PlannerKind::optimal}) {
    if (planner == PlannerKind::greedy && !greedy) continue;
    PlanOptions options;
    options.planner = planner;
    options.rules = planner == PlannerKind::optimal ? Rules::native : Rules::dtensor;
    PlanOutcome outcome = plan_requests(c.meshes, uniform_topology(), {c.request}, options, "");
    if (!outcome.failures.empty()) continue;
    outcome.plan.digest = name + " " + to_text(planner);
    out.push_back({outcome.plan.digest, std::move(outcome.plan)});
  }
}

inline std::vector<VectorPlan> vector_plans(int64_t ranks, size_t every = 1) {
  std::vector<VectorPlan> out;
  const nlohmann::json vectors = read_vectors("redistribute.json");
  size_t number = 0;
  for (const auto& json : vectors.at("cases")) {
    if (number++ % every != 0) continue;
    add_plans(out, "case " + std::to_string(number - 1), shrunk_case(json, ranks), json.at("torch").contains("greedy"));
  }
  return out;
}

// The other files' words for a case, in redistribute.json's.
inline nlohmann::json as_torch_case(const nlohmann::json& json) {
  nlohmann::json out{{"tensor", json.at("tensor")}, {"mesh", {{"flattened", nlohmann::json::array()}}}};
  nlohmann::json& mesh = out["mesh"];
  if (json.at("mesh").contains("dims")) {
    for (const auto& dim : json.at("mesh").at("dims")) {
      mesh["shape"].push_back(dim.at("size"));
      mesh["dim_names"].push_back(dim.at("name"));
    }
  } else {
    mesh["shape"] = json.at("mesh").at("shape");
    mesh["dim_names"] = json.at("mesh").at("dim_names");
  }
  for (const std::string side : {"src", "dst"}) {
    out[side]["placements"] = json.at(side);
    if (!json.contains(side + "_order")) continue;
    for (const auto& entry : json.at(side + "_order")) {
      nlohmann::json& order = out[side]["shard_order"][std::to_string(entry.at("tensor_dim").get<int64_t>())];
      for (const auto& name : entry.at("mesh_dims")) {
        const auto at = std::find(mesh["dim_names"].begin(), mesh["dim_names"].end(), name);
        order.push_back(at - mesh["dim_names"].begin());
      }
    }
  }
  return out;
}

inline std::vector<VectorPlan> reshard_plans(int64_t ranks) {
  std::vector<VectorPlan> out;
  const nlohmann::json vectors = read_vectors("reshard.json");
  for (const auto& json : vectors.at("cases")) {
    add_plans(out, json.at("name").get<std::string>(), shrunk_case(as_torch_case(json), ranks), true);
  }
  return out;
}

// Big tensors: replay them shrunk.
inline std::vector<VectorPlan> workload_plans(int64_t ranks) {
  std::vector<VectorPlan> out;
  const nlohmann::json captured = read_json(std::string(MESHPLAN_TESTDATA) + "/workloads/captured.json");
  for (const auto& [name, workload] : captured.at("workloads").items()) {
    size_t number = 0;
    for (const auto& json : workload.at("redistributions")) {
      add_plans(out, name + " " + std::to_string(number++), shrunk_case(as_torch_case(json), ranks), true);
    }
  }
  return out;
}

// All of them, by the name of the set.
inline std::vector<VectorPlan> plans_of_set(const std::string& set, int64_t ranks) {
  if (set == "vectors") return vector_plans(ranks);
  if (set == "reshard") return reshard_plans(ranks);
  return workload_plans(ranks);
}

}  // namespace meshplan::test
