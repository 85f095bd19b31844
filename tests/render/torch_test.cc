// The PyTorch form of plans: which steps a call of DTensor.redistribute runs as they are, and what stands in their place where it does not.
// tests/capture follows such code in PyTorch itself, on data.
#include "render/torch.h"

#include <doctest/doctest.h>

namespace meshplan {
namespace {

// A plan of one redistribution on mesh a 2 x b 4 (x c 2), made of steps given as (op, state after).
struct Sketch {
  std::string src;
  std::vector<std::pair<Op, std::string>> steps;
  std::vector<int64_t> shape = {16, 16};
  std::vector<int64_t> mesh = {2, 4};
  std::vector<std::vector<std::string>> flattened{};
};

Plan plan_of(const Sketch& sketch) {
  Plan plan;
  plan.digest = "sha256:0";
  std::vector<std::pair<std::string, int64_t>> dims;
  for (size_t i = 0; i < sketch.mesh.size(); ++i) dims.emplace_back(std::string(1, static_cast<char>('a' + i)), sketch.mesh[i]);
  int64_t world = 1;
  for (const int64_t size : sketch.mesh) world *= size;
  REQUIRE(add_root(plan.meshes, "mesh", world, {}, dims).ok());
  for (const auto& flat : sketch.flattened) REQUIRE(declare_listed(plan.meshes, "mesh", flat).ok());
  PlannedRedistribution planned;
  planned.request.id = "w.grad";
  planned.request.tensor = {sketch.shape, DType::float32};
  const auto state = [&](const std::string& text) {
    const Result<State> parsed = parse_state(text, sketch.mesh, sketch.shape.size());
    REQUIRE_MESSAGE(parsed.ok(), text);
    return parsed.value();
  };
  planned.request.src = state(sketch.src);
  const auto placement = [&](const State& at, size_t dim) {
    return has_whole_dims(at, sketch.mesh) ? placements_of(at, sketch.mesh)[dim] : replicate();
  };
  State before = planned.request.src;
  for (const auto& [op, text] : sketch.steps) {
    Step step;
    step.op = op;
    step.state = state(text);
    for (size_t i = 0; i < sketch.mesh.size(); ++i) {
      if (op == Op::exchange || placement(before, i) != placement(step.state, i))
        step.mesh_dims.push_back({static_cast<int32_t>(i), 1, sketch.mesh[i]});
    }
    if (op == Op::all_reduce || op == Op::reduce_scatter) step.reduce_op = ReduceOp::sum;
    planned.steps.push_back(step);
    before = step.state;
  }
  planned.dst = before;
  planned.request.dst = before;
  planned.trace = trace_of(planned.request.src, planned.steps, sketch.mesh);
  plan.redistributions.push_back(planned);
  return plan;
}

// Why PyTorch does not run the sketch's first step as it is.
std::string obstacle(const Sketch& sketch) {
  const Plan plan = plan_of(sketch);
  const PlannedRedistribution& planned = plan.redistributions.front();
  return torch_obstacle(plan.meshes, plan.meshes.meshes.front(), planned.request.tensor, planned.request.src, planned.steps.front());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("one mesh dim at a time runs as it is") {
  CHECK(obstacle({"S(0)S(1)", {{Op::all_gather, "S(0)R"}}}).empty());
  CHECK(obstacle({"S(0)P(sum)", {{Op::all_reduce, "S(0)R"}}}).empty());
  CHECK(obstacle({"S(0)P(sum)", {{Op::reduce_scatter, "S(0)S(1)"}}}).empty());
  CHECK(obstacle({"S(0)S(1)", {{Op::all_to_all, "S(0)[0]S(0)[1]"}}}).empty());
  CHECK(obstacle({"RS(1)", {{Op::slice, "S(0)S(1)"}}}).empty());
  CHECK(obstacle({"S(0)R", {{Op::to_partial, "P(sum)R"}}}).empty());
}

TEST_CASE("several mesh dims need a flattened mesh and equal changes") {
  const Sketch gather{"S(0)[0]S(0)[1]", {{Op::all_gather, "RR"}}};
  CHECK(has(obstacle(gather), "flattened"));
  Sketch declared = gather;
  declared.flattened = {{"a", "b"}};
  CHECK(obstacle(declared).empty());
  CHECK(has(obstacle({"S(0)S(1)", {{Op::all_gather, "RR"}}, {16, 16}, {2, 4}, {{"a", "b"}}}), "equal changes"));
  CHECK(has(obstacle({"S(0)[0]S(0)[1]", {{Op::all_to_all, "S(1)[0]S(1)[1]"}}, {16, 16}, {2, 4}, {{"a", "b"}}}), "all_to_all"));
  CHECK(has(obstacle({"S(0)P(sum)P(sum)", {{Op::reduce_scatter, "S(0)S(1)[0]S(1)[1]"}}, {16, 16}, {2, 4, 2}, {{"b", "c"}}}), "whole"));
}

TEST_CASE("what PyTorch has no primitive for is said") {
  CHECK(has(obstacle({"S(0)R", {{Op::exchange, "RS(0)"}}}), "exchange"));
  CHECK(has(obstacle({"R{S(0):2,R:2}", {{Op::all_gather, "RR"}}}), "part of a mesh dim"));
  CHECK(has(obstacle({"S(0)[0]S(0)[1]", {{Op::all_gather, "RR"}}, {10, 4}, {2, 4}, {{"a", "b"}}}), "uneven"));
  // A reduction that PyTorch does not run by itself: P to R on a beside R to S on b.
  CHECK(has(obstacle({"P(sum)R", {{Op::reduce_scatter, "S(0)[0]S(0)[1]"}}}), "slice on b"));
}

TEST_CASE("a call a step, with orders as strided shards") {
  const std::string text = render_torch(plan_of({"S(0)[1]S(0)[0]", {{Op::all_gather, "RS(0)"}, {Op::all_to_all, "RS(1)"}}}));
  CHECK(has(text, "def w_grad(x, mesh):"));
  CHECK(has(text, "    x = x.redistribute(mesh, [Replicate(), Shard(0)])  # all_gather on a\n"));
  CHECK(has(text, "    x = x.redistribute(mesh, [Replicate(), Shard(1)])  # all_to_all on b\n    return x\n"));
  CHECK(has(text, "REDISTRIBUTIONS = {\n    \"w.grad\": w_grad,\n}\n"));
  CHECK_FALSE(has(text, "_StridedShard"));
  const std::string strided = render_torch(plan_of({"RS(0)", {{Op::slice, "S(0)[1]S(0)[0]"}}}));
  CHECK(has(strided, "import _StridedShard\n"));
  CHECK(has(strided, "[_StridedShard(0, split_factor=4), Shard(0)]"));
}

TEST_CASE("a merged step without its flatten becomes a call a mesh dim, the last of the order first") {
  const std::string text = render_torch(plan_of({"S(0)[0]S(0)[1]", {{Op::all_gather, "RR"}}}));
  const size_t first = text.find("[Shard(0), Replicate()])  # all_gather on b");
  const size_t second = text.find("[Replicate(), Replicate()])  # all_gather on a");
  REQUIRE(first != std::string::npos);
  REQUIRE(second != std::string::npos);
  CHECK(first < second);
  CHECK(has(text, "needs them flattened\n"));
  // PyTorch looks for a flatten in mesh order, others do not.
  CHECK(has(render_torch(plan_of({"P(sum)P(sum)", {{Op::all_reduce, "RR"}}, {16, 16}, {2, 4}, {{"b", "a"}}})),
            "one step for [\"a\", \"b\"] needs them flattened in this order\n"));
}

TEST_CASE("a replica becomes partial by hand") {
  CHECK(has(obstacle({"RR", {{Op::to_partial, "P(sum)R"}}}), "only shards"));
  const std::string sum = render_torch(plan_of({"RR", {{Op::to_partial, "RP(sum)"}}}));
  CHECK(has(sum, "import DTensor, Partial"));
  CHECK(has(sum, "x.to_local() if mesh.get_local_rank(1) == 0 else torch.zeros_like(x.to_local()), mesh, [Replicate(), Partial(\"sum\")]"));
  const std::string max = render_torch(plan_of({"RR", {{Op::to_partial, "P(max)P(max)"}}}));
  CHECK(has(max, "DTensor.from_local(x.to_local(), mesh, [Partial(\"max\"), Partial(\"max\")]"));
  CHECK_FALSE(has(max, "import torch\n"));
}

TEST_CASE("a plan of one call is said to be what the program has already") {
  CHECK(has(render_torch(plan_of({"S(0)R", {{Op::all_gather, "RR"}}})), "# one call, as the program has it already\n"));
  const std::string two = render_torch(plan_of({"S(0)[1]S(0)[0]", {{Op::all_gather, "RS(0)"}, {Op::all_to_all, "RS(1)"}}}));
  CHECK_FALSE(has(two, "what the program has already"));
  CHECK_FALSE(has(render_torch(plan_of({"S(0)R", {{Op::exchange, "RS(0)"}}})), "what the program has already"));
}

TEST_CASE("an exchange is left to PyTorch, in words") {
  const std::string text = render_torch(plan_of({"S(0)R", {{Op::exchange, "RS(0)"}}}));
  CHECK(has(text, "    # exchange on a, b to RS(0): PyTorch has no point-to-point exchange of boxes\n"));
  CHECK(has(text, "    x = x.redistribute(mesh, [Replicate(), Shard(0)])  # PyTorch plans this part itself\n"));
}

TEST_CASE("the advice's flattens come first, once") {
  Plan plan = plan_of({"S(0)[0]S(0)[1]", {{Op::all_gather, "S(0)R"}, {Op::all_gather, "RR"}}});
  Warning warning;
  warning.dims = {"a", "b"};
  warning.collective = Op::all_gather;
  warning.saves_ns = 3'000;
  warning.fix_name = "a_b";
  warning.mesh = "mesh";
  plan.redistributions.front().request.count = 4;
  plan.redistributions.front().warnings = {warning};
  plan.redistributions.push_back(plan.redistributions.front());
  plan.redistributions.back().request.id = "w/grad";
  const std::string text = render_torch(plan);
  const std::string line = "    mesh[\"a\", \"b\"]._flatten(\"a_b\")  # saves 24.0 us in 8 redistributions\n";
  const size_t at = text.find(line);
  REQUIRE_MESSAGE(at != std::string::npos, text);
  CHECK(text.find(line, at + 1) == std::string::npos);
  CHECK(has(text, "    \"w/grad\": w_grad_2,\n"));
}

TEST_CASE("no function has the name of a keyword, or of what the file itself uses") {
  for (const std::string name : {"class", "lambda", "None", "torch", "Shard", "declare_flattened", "NotImplementedError", "_NormPartial"}) {
    CAPTURE(name);
    Plan plan = plan_of({"S(0)R", {{Op::all_gather, "RR"}}});
    plan.redistributions.front().request.id = name;
    const std::string text = render_torch(plan);
    CHECK(has(text, "def r_" + name + "(x, mesh):\n"));
    CHECK(has(text, "    \"" + name + "\": r_" + name + ",\n"));
  }
}

TEST_CASE("ids that are no identifiers and hold quotes stay inside their literals") {
  Plan plan = plan_of({"S(0)R", {{Op::all_gather, "RR"}}});
  plan.redistributions.front().request.id = "0\"\n\\";
  const std::string text = render_torch(plan);
  CHECK(has(text, "def r_0___(x, mesh):\n"));
  CHECK(has(text, "    \"0\\\"\\x0a\\\\\": r_0___,\n"));
}

}  // namespace
}  // namespace meshplan
