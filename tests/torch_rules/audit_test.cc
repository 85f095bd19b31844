// The audit against what PyTorch really did: it calls wrong exactly the recorded runs whose data
// came out wrong.
#include "torch_rules/audit.h"

#include <doctest/doctest.h>

#include "cost/topology.h"
#include "diag/codes.h"
#include "planner/planner.h"
#include "tensor/box.h"
#include "torch_rules/torch_case.h"

namespace meshplan {
namespace {

bool has_code(const PlannedRedistribution& planned, const std::string& code) {
  return std::any_of(planned.audit.begin(), planned.audit.end(), [&](const AuditFinding& found) { return found.code == code; });
}

PlanOptions audited(PlannerKind planner) {
  PlanOptions options;
  options.planner = planner;
  options.rules = planner == PlannerKind::optimal ? Rules::native : Rules::dtensor;
  options.audit = true;
  return options;
}

struct Wrongs {
  int wrong = 0;
  int right = 0;
};

Wrongs check_wrongs(const std::string& file) {
  Wrongs wrongs;
  const nlohmann::json vectors = test::read_vectors(file);
  int number = -1;
  for (const auto& json : vectors.at("cases")) {
    ++number;
    for (const auto& of_planner : json.at("torch").items()) {
      const std::string& planner = of_planner.key();
      const nlohmann::json& torch = of_planner.value();
      if (!torch.contains("numerically_correct")) continue;
      CAPTURE(file);
      CAPTURE(number);
      CAPTURE(planner);
      const test::TorchCase c = test::torch_case(json);
      const PlanOptions options = audited(planner == "graph" ? PlannerKind::graph : PlannerKind::greedy);
      const PlanOutcome outcome = plan_requests(c.meshes, uniform_topology(), {c.request}, options, "");
      REQUIRE(outcome.failures.empty());
      const bool correct = torch.at("numerically_correct").get<bool>();
      CHECK(has_code(outcome.plan.redistributions[0], "A0401") == !correct);
      ++(correct ? wrongs.right : wrongs.wrong);
    }
  }
  return wrongs;
}

TEST_CASE("every silent wrong result is found and no right one is called wrong") {
  const Wrongs recorded = check_wrongs("redistribute.json");
  CHECK(recorded.wrong == 3);
  CHECK(recorded.right == 443);
  const Wrongs more = check_wrongs("redistribute_uneven.json");
  CHECK(more.wrong >= 50);
  CHECK(more.right >= 50);
}

// The findings of one redistribution on the mesh dims given, with the flattens given.
std::vector<AuditFinding> findings(const std::vector<std::pair<std::string, int64_t>>& dims,
                                   const std::vector<std::vector<std::string>>& flattened, const std::vector<std::string>& src,
                                   const std::vector<std::string>& dst, std::vector<int64_t> shape, PlannerKind planner,
                                   const Topology& topology = uniform_topology()) {
  MeshTable meshes;
  int64_t world = 1;
  for (const auto& [name, size] : dims) world *= size;
  (void)add_root(meshes, "mesh", world, {}, dims).value();
  for (const auto& set : flattened) (void)declare_flatten(meshes, "mesh", set).value();
  const auto state = [&](const std::vector<std::string>& texts) {
    std::vector<Placement> placements;
    for (const std::string& text : texts) placements.push_back(parse_placement(text).value());
    return make_state(placements, mesh_shape(meshes.meshes[0]), shape.size()).value();
  };
  Request request;
  request.id = "x";
  request.src = state(src);
  request.dst = state(dst);
  request.tensor.shape = shape;
  const PlanOutcome outcome = plan_requests(meshes, topology, {request}, audited(planner), "");
  REQUIRE(outcome.failures.empty());
  std::vector<AuditFinding> found = outcome.plan.redistributions[0].audit;
  for (const AuditFinding& f : found) {
    const CodeEntry* code = find_code(f.code);
    REQUIRE(code != nullptr);
    CHECK(std::string(code->name) == f.kind);
    CHECK(!f.message.empty());
    CHECK(!f.better_trace.empty());
  }
  return found;
}

const AuditFinding* find(const std::vector<AuditFinding>& found, const std::string& code) {
  for (const AuditFinding& f : found) {
    if (f.code == code) return &f;
  }
  return nullptr;
}

TEST_CASE("A0401 names the pieces") {
  const auto found = findings({{"a", 2}, {"b", 2}}, {{"a", "b"}}, {"S(0)", "S(0)"}, {"R", "R"}, {10}, PlannerKind::greedy);
  const AuditFinding* f = find(found, "A0401");
  REQUIRE(f != nullptr);
  CHECK(f->step == 0);
  CHECK(f->message.find("3, 2, 3, 2 of 10") != std::string::npos);
  CHECK(f->message.find("3, 3, 3, 1") != std::string::npos);
  CHECK(find(findings({{"a", 2}, {"b", 2}}, {{"a", "b"}}, {"S(0)", "S(0)"}, {"R", "R"}, {12}, PlannerKind::greedy), "A0401") == nullptr);
  // 3 over 2x2: 1 1 1 0 both ways. An empty tensor has no wrong data.
  CHECK(find(findings({{"a", 2}, {"b", 2}}, {{"a", "b"}}, {"S(0)", "S(0)"}, {"R", "R"}, {3}, PlannerKind::greedy), "A0401") == nullptr);
  CHECK(find(findings({{"a", 2}, {"b", 2}}, {{"a", "b"}}, {"S(0)", "S(0)"}, {"R", "R"}, {10, 0}, PlannerKind::greedy), "A0401") == nullptr);
  // Not merged, not wrong.
  CHECK(find(findings({{"a", 2}, {"b", 2}}, {}, {"S(0)", "S(0)"}, {"R", "R"}, {10}, PlannerKind::greedy), "A0401") == nullptr);
}

TEST_CASE("A0402: ranks that see 4 merge, ranks that see 3 do not") {
  const auto found = findings({{"a", 2}, {"b", 2}, {"c", 2}}, {{"b", "c"}}, {"S(0)", "P(sum)", "P(sum)"}, {"S(0)", "S(0)", "S(0)"}, {7},
                              PlannerKind::graph);
  const AuditFinding* f = find(found, "A0402");
  REQUIRE(f != nullptr);
  CHECK(f->message.find("ranks with 4 elements") != std::string::npos);
  CHECK(f->message.find("those with 3 do not") != std::string::npos);
  CHECK(find(findings({{"a", 2}, {"b", 2}, {"c", 2}}, {{"b", "c"}}, {"S(0)", "P(sum)", "P(sum)"}, {"S(0)", "S(0)", "S(0)"}, {8},
                      PlannerKind::graph),
             "A0402") == nullptr);
}

TEST_CASE("A0403 under native rules: PyTorch has no plan that runs") {
  const auto found = findings({{"a", 2}, {"b", 2}}, {}, {"S(0)", "R"}, {"P(max)", "R"}, {8}, PlannerKind::optimal);
  const AuditFinding* f = find(found, "A0403");
  REQUIRE(f != nullptr);
  CHECK(f->message.find("S(0) to P(max)") != std::string::npos);
}

TEST_CASE("A0404: a shard on a mesh dim of size 1") {
  const auto found = findings({{"a", 1}, {"b", 4}}, {}, {"S(0)", "S(0)"}, {"R", "S(0)"}, {8}, PlannerKind::greedy);
  const AuditFinding* f = find(found, "A0404");
  REQUIRE(f != nullptr);
  CHECK(f->wire_bytes > 0);
  CHECK(f->better_wire_bytes == 0);
  CHECK(find(findings({{"a", 1}, {"b", 4}}, {}, {"S(0)", "S(0)"}, {"R", "R"}, {8}, PlannerKind::greedy), "A0404") == nullptr);
}

TEST_CASE("A0405: two reductions in a row, unless their order cannot matter") {
  CHECK(find(findings({{"a", 2}, {"b", 2}}, {}, {"P(sum)", "P(sum)"}, {"R", "R"}, {8}, PlannerKind::greedy), "A0405") != nullptr);
  CHECK(find(findings({{"a", 2}, {"b", 2}}, {{"a", "b"}}, {"P(sum)", "P(sum)"}, {"R", "R"}, {8}, PlannerKind::greedy), "A0405") == nullptr);
  CHECK(find(findings({{"a", 2}, {"b", 2}}, {}, {"P(max)", "P(max)"}, {"R", "R"}, {8}, PlannerKind::greedy), "A0405") == nullptr);
  CHECK(find(findings({{"a", 2}, {"b", 2}}, {}, {"P(sum)", "P(sum)"}, {"S(0)", "S(0)"}, {8}, PlannerKind::greedy), "A0405") == nullptr);
}

TEST_CASE("A0406: the whole is reduced and sliced afterwards") {
  const auto found = findings({{"a", 2}, {"b", 4}}, {}, {"P(sum)", "R"}, {"S(0)", "S(1)"}, {8, 8}, PlannerKind::greedy);
  const AuditFinding* f = find(found, "A0406");
  REQUIRE(f != nullptr);
  CHECK(f->step == 0);
  CHECK(f->better_wire_bytes * 4 == f->wire_bytes);
  CHECK(find(findings({{"a", 2}, {"b", 4}}, {}, {"P(sum)", "S(1)"}, {"S(0)", "S(1)"}, {8, 8}, PlannerKind::greedy), "A0406") == nullptr);
}

TEST_CASE("A0407: a merged gather whose group lies unevenly on its hosts") {
  Topology topology = topology_preset("h100").value();
  const auto gather = [&] {
    return findings({{"a", 2}, {"b", 4}}, {{"a", "b"}}, {"S(0)", "S(0)"}, {"R", "R"}, {int64_t{1} << 28}, PlannerKind::greedy, topology);
  };
  // 8 ranks in one host, and 4 and 4: by this model merging loses nothing.
  CHECK(find(gather(), "A0407") == nullptr);
  topology.levels[0].ranks = 4;
  CHECK(find(gather(), "A0407") == nullptr);
  // 6 and 2: the two fetch six pieces each across the hosts, where their parts' gathers share the
  // way.
  topology.levels[0].ranks = 6;
  const auto found = gather();
  REQUIRE(find(found, "A0407") != nullptr);
  CHECK(find(found, "A0407")->step == 0);
}

TEST_CASE("pieces of nested and flat shards are those of the boxes") {
  for (const std::vector<int64_t>& nested_mesh : std::vector<std::vector<int64_t>>{{2, 2}, {2, 3}, {4, 2}, {1, 5}, {3, 1}}) {
    const int64_t a = nested_mesh[0];
    const int64_t b = nested_mesh[1];
    const std::vector<int64_t> flat_mesh = {a * b};
    const std::vector<SubAxis> nested = {{0, 1, a}, {1, 1, b}};
    const std::vector<SubAxis> flat = {{0, 1, a * b}};
    for (int64_t width = 0; width < 60; ++width) {
      bool differs = false;
      for (int64_t rank = 0; rank < a * b; ++rank) {
        const std::vector<int64_t> coordinates = {rank / b, rank % b};
        const Interval one = shard_interval(nested, width, nested_mesh, coordinates);
        const Interval other = shard_interval(flat, width, flat_mesh, std::vector<int64_t>{rank});
        differs = differs || (!(one == other) && meshplan::width(one) + meshplan::width(other) > 0);
      }
      CAPTURE(nested_mesh);
      CAPTURE(width);
      CHECK(nested_differs_from_flat(nested_mesh, width).has_value() == differs);
    }
  }
  CHECK(widths_left(std::vector<SubAxis>{{0, 1, 4}}, 6) == std::vector<int64_t>{2, 0});
  CHECK(widths_left(std::vector<SubAxis>{{0, 1, 4}}, 7) == std::vector<int64_t>{2, 1});
  CHECK(widths_left(std::vector<SubAxis>{{0, 1, 2}, {1, 1, 2}}, 7) == std::vector<int64_t>{2, 1});
  CHECK(widths_left({}, 7) == std::vector<int64_t>{7});
}

}  // namespace
}  // namespace meshplan
