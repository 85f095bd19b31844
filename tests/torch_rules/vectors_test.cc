// Every recorded plan of PyTorch: the same steps, traces, warnings and search costs; exit 3 where nothing can execute the steps.
//
// More recordings of the same form can be checked without building anything: MESHPLAN_VECTORS=a.json:b.json test_planner -tc="recorded*".
#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

#include "tensor/box.h"
#include "torch_rules/dtensor_cost.h"
#include "torch_rules/rule_planner.h"
#include "torch_rules/torch_case.h"

namespace meshplan {
namespace {

struct Tally {
  int plans = 0;
  int refused = 0;
};

Tally check_vectors(const std::string& file, const nlohmann::json& vectors) {
  Tally tally;
  int number = -1;
  for (const auto& json : vectors.at("cases")) {
    ++number;
    const test::TorchCase c = test::torch_case(json);
    const Topology topology = {};
    for (const auto& of_planner : json.at("torch").items()) {
      const std::string& planner = of_planner.key();
      const nlohmann::json& torch = of_planner.value();
      CAPTURE(file);
      CAPTURE(number);
      CAPTURE(planner);
      PlanOptions options;
      options.planner = planner == "graph" ? PlannerKind::graph : PlannerKind::greedy;
      options.rules = Rules::dtensor;
      const PlanQuestion question{&c.meshes, &topology, &c.request, &options};
      const auto answer = rule_transitions(question);
      if (!test::executable(torch)) {
        REQUIRE(!answer.ok());
        CHECK(answer.error().fault == Fault::no_plan);
        ++tally.refused;
        continue;
      }
      REQUIRE(answer.ok());
      const StepList list = merged_steps(question, *answer);
      PlanOptions unmerged = options;
      unmerged.merge = false;
      const std::vector<Step> apart = merged_steps({&c.meshes, &topology, &c.request, &unmerged}, *answer).steps;
      const std::vector<int64_t> shape = mesh_shape(c.meshes.meshes[0]);
      CHECK(trace_of(c.request.src, apart, shape) == torch.at("trace").get<std::string>());
      if (apart.size() == list.steps.size()) {
        CHECK(list.unmerged_trace.empty());
      } else {
        CHECK(list.unmerged_trace == torch.at("trace").get<std::string>());
      }
      CHECK(trace_of(c.request.src, list.steps, shape) == torch.at("merged_trace").get<std::string>());
      CHECK(test::steps_json(c.request.src, apart, shape) == torch.at("steps"));
      CHECK(test::steps_json(c.request.src, list.steps, shape) == torch.at("merged_steps"));
      CHECK(test::warnings_json(list.warnings) == torch.at("warnings"));
      CHECK((list.steps.empty() ? c.request.src : list.steps.back().state) == c.request.dst);
      const DtensorCost cost(CostModel::dtensor, shape, c.request.tensor, 1);
      if (torch.contains("cost_us"))
        CHECK(std::abs(cost.path(placements_of(c.request.src, shape), answer->transitions) - torch.at("cost_us").get<double>()) < 1e-3);
      ++tally.plans;
    }
  }
  return tally;
}

TEST_CASE("recorded plans of PyTorch") {
  const Tally tally = check_vectors("redistribute.json", test::read_vectors("redistribute.json"));
  CHECK(tally.plans == 457);
  CHECK(tally.refused == 4);
  CHECK(check_vectors("redistribute_uneven.json", test::read_vectors("redistribute_uneven.json")).plans == 231);
  CHECK(check_vectors("redistribute_fresh.json", test::read_vectors("redistribute_fresh.json")).plans == 746);
  const char* more = std::getenv("MESHPLAN_VECTORS");
  std::istringstream files(more == nullptr ? "" : more);
  for (std::string file; std::getline(files, file, ':');) {
    const Tally other = check_vectors(file, test::read_json(file));
    MESSAGE(file, ": ", other.plans, " plans agree unless said otherwise, ", other.refused, " refused");
  }
}

TEST_CASE("boxes of the recorded sources and targets") {
  const nlohmann::json vectors = test::read_vectors("redistribute.json");
  for (const auto& json : vectors.at("cases")) {
    const test::TorchCase c = test::torch_case(json);
    const std::vector<int64_t> shape = mesh_shape(c.meshes.meshes[0]);
    for (const auto& [side, state] : {std::pair{"src", &c.request.src}, std::pair{"dst", &c.request.dst}}) {
      const auto& ranks = json.at("local").at(side);
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        const Box box = box_of(*state, c.request.tensor.shape, shape, coordinates_of(static_cast<int64_t>(rank), shape));
        std::vector<int64_t> sizes;
        std::vector<int64_t> offsets;
        for (const Interval& i : box) {
          sizes.push_back(width(i));
          offsets.push_back(i.lo);
        }
        CHECK(nlohmann::json{sizes, offsets} == ranks[rank]);
      }
    }
  }
}

}  // namespace
}  // namespace meshplan
