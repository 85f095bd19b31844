// Reductions that may not mix and meet on the way of PyTorch's plans.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "../cost/small_mesh.h"
#include "cost/topology.h"
#include "planner/planner.h"

namespace meshplan {
namespace {

Placement placement_of(size_t number) {
  const std::vector<Placement> all = {replicate(), shard(0), partial(ReduceOp::sum), partial(ReduceOp::max), partial(ReduceOp::avg)};
  return all[number];
}

}  // namespace

TEST_CASE("PyTorch's plans keep reductions apart that may not mix, or it is said which mesh dims they would meet on") {
  std::map<std::string, int64_t> answers;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 2}, {2, 1}, {1, 2}}) {
    MeshTable meshes;
    meshes.meshes = {test::mesh_of(sizes)};
    std::vector<State> states;
    for (size_t i = 0; i < 25; ++i) {
      if (const auto state = make_state(std::vector<Placement>{placement_of(i / 5), placement_of(i % 5)}, sizes, 1))
        states.push_back(*state);
    }
    for (const PlannerKind planner : {PlannerKind::greedy, PlannerKind::graph}) {
      for (const State& src : states) {
        for (const State& dst : states) {
          Request request;
          request.id = "x";
          request.tensor = {{8}, DType::float32};
          request.src = src;
          request.dst = dst;
          PlanOptions options;
          options.planner = planner;
          options.rules = Rules::dtensor;
          CAPTURE(to_text(src, sizes));
          CAPTURE(to_text(dst, sizes));
          const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {request}, options, "");
          if (outcome.failures.empty()) {
            ++answers["planned"];
            continue;
          }
          const std::string& message = outcome.failures.front().error.message;
          const bool meets = message.find(" is pending on '") != std::string::npos;
          ++answers[meets ? "would mix" : "cannot run"];
          CHECK((meets || message.find("would go from ") != std::string::npos));
        }
      }
    }
  }
  CHECK(answers["planned"] > 1'000);
  CHECK(answers["would mix"] > 40);
  CHECK(answers["cannot run"] > 40);
}

}  // namespace meshplan
