// The pipeline: plans are named, priced, warned about, proven and counted; equal questions are
// answered once.
#include <doctest/doctest.h>

#include <chrono>

#include "cost/topology.h"
#include "planner/planner.h"
#include "torch_rules/torch_case.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

PlanOptions rule_options(PlannerKind planner) {
  PlanOptions options;
  options.planner = planner;
  options.rules = Rules::dtensor;
  return options;
}

// Mesh dp 2 x tp 8 with or without dp_tp.
MeshTable two_dims(bool flattened) {
  MeshTable meshes;
  (void)add_root(meshes, "mesh", 16, {}, {{"dp", 2}, {"tp", 8}}).value();
  if (flattened) (void)declare_flatten(meshes, "mesh", {"dp", "tp"}).value();
  return meshes;
}

// Placements one after the other, in default shard order: "P(sum)S(0)".
State default_state(const std::string& text, std::span<const int64_t> mesh_shape, size_t tensor_rank) {
  std::vector<Placement> placements;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text[at] == 'R' ? at + 1 : text.find(')', at) + 1;
    placements.push_back(parse_placement(text.substr(at, end - at)).value());
    at = end;
  }
  return make_state(placements, mesh_shape, tensor_rank).value();
}

Request request_of(const MeshTable& meshes, const std::string& src, const std::string& dst, std::vector<int64_t> shape) {
  const std::vector<int64_t> sizes = mesh_shape(meshes.meshes[0]);
  Request request;
  request.id = src + " to " + dst;
  request.src = default_state(src, sizes, shape.size());
  request.dst = default_state(dst, sizes, shape.size());
  request.tensor.shape = std::move(shape);
  return request;
}

TEST_CASE("every recorded case goes through the pipeline") {
  const nlohmann::json vectors = test::read_vectors("redistribute.json");
  for (const auto& json : vectors.at("cases")) {
    const test::TorchCase c = test::torch_case(json);
    for (const auto& [planner, torch] : json.at("torch").items()) {
      const PlanOptions options = rule_options(planner == "graph" ? PlannerKind::graph : PlannerKind::greedy);
      const PlanOutcome outcome = plan_requests(c.meshes, uniform_topology(), {c.request}, options, "");
      if (!test::executable(torch)) {
        REQUIRE(outcome.failures.size() == 1);
        CHECK(exit_code(outcome.failures[0].error.fault) == 3);
        continue;
      }
      REQUIRE(outcome.failures.empty());
      REQUIRE(outcome.plan.redistributions.size() == 1);
      const PlannedRedistribution& planned = outcome.plan.redistributions[0];
      CHECK(planned.trace == torch.at("merged_trace").get<std::string>());
      CHECK(planned.unmerged_trace == torch.at("trace").get<std::string>());
      CHECK(test::warnings_json(planned.warnings) == torch.at("warnings"));
      for (const Step& step : planned.steps) CHECK(!step.why.empty());
    }
  }
}

TEST_CASE("a missing flatten is valued by declaring it") {
  const MeshTable without = two_dims(false);
  const MeshTable with = two_dims(true);
  const PlanOptions options = rule_options(PlannerKind::greedy);
  const PlanOutcome apart = plan_requests(without, uniform_topology(), {request_of(without, "P(sum)P(sum)", "RR", {64, 32})}, options, "");
  const PlanOutcome merged = plan_requests(with, uniform_topology(), {request_of(with, "P(sum)P(sum)", "RR", {64, 32})}, options, "");
  const PlannedRedistribution& a = apart.plan.redistributions.at(0);
  const PlannedRedistribution& m = merged.plan.redistributions.at(0);
  REQUIRE(a.warnings.size() == 1);
  CHECK(m.warnings.empty());
  CHECK(a.warnings[0].fix_name == "dp_tp");
  CHECK(a.warnings[0].saves_ns == saved_ns(a.totals, m.totals));
  CHECK(a.warnings[0].saves_collectives == 1);
  CHECK(m.trace == "P(sum)P(sum)-->RR");
  CHECK(m.steps[0].group == "dp_tp");
  REQUIRE(merged.plan.groups.size() == 1);
  CHECK(merged.plan.groups[0].size == 16);
  CHECK(merged.plan.groups[0].count == 1);
  REQUIRE(apart.plan.groups.size() == 2);
  CHECK(apart.plan.groups[0].id == "dp");
  CHECK(apart.plan.groups[0].count == 8);
  CHECK(apart.plan.groups[1].id == "tp");
  CHECK(to_text(apart.plan.groups[1].layout) == "8:1");
  CHECK(a.reductions[0].collectives == 2);
  CHECK(a.reductions[0].nesting == "dp, then tp");
  CHECK(m.reductions[0].collectives == 1);
}

TEST_CASE("one_reduction and max_memory_bytes refuse what breaks them") {
  const MeshTable meshes = two_dims(false);
  PlanOptions options = rule_options(PlannerKind::greedy);
  const Request request = request_of(meshes, "P(sum)P(sum)", "RR", {64, 32});
  options.one_reduction = true;
  PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {request}, options, "");
  REQUIRE(outcome.failures.size() == 1);
  CHECK(outcome.failures[0].error.fault == Fault::no_plan);
  CHECK(outcome.failures[0].error.message.find("2 collectives") != std::string::npos);
  options.one_reduction = false;
  options.max_memory_bytes = 1;
  outcome = plan_requests(meshes, uniform_topology(), {request}, options, "");
  REQUIRE(outcome.failures.size() == 1);
  CHECK(outcome.failures[0].error.fault == Fault::no_plan);
  CHECK(outcome.failures[0].error.message.find("max_memory_bytes allows 1") != std::string::npos);
}

TEST_CASE("backward leaves out reductions that the source does not have") {
  const MeshTable meshes = two_dims(true);
  Request request = request_of(meshes, "RP(sum)", "P(sum)P(sum)", {64, 32});
  request.direction = Direction::backward;
  for (const PlannerKind planner : {PlannerKind::greedy, PlannerKind::graph}) {
    const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {request}, rule_options(planner), "");
    const PlannedRedistribution& planned = outcome.plan.redistributions.at(0);
    CHECK(planned.steps.empty());
    CHECK(planned.dst == request.src);
  }
  request.direction = Direction::forward;
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {request}, rule_options(PlannerKind::greedy), "");
  CHECK(outcome.plan.redistributions.at(0).trace == "RP(sum)->P(sum)P(sum)");
}

TEST_CASE("mesh dims of size 1 are steps of the trace and cost nothing") {
  MeshTable meshes;
  (void)add_root(meshes, "mesh", 4, {}, {{"pp", 1}, {"dp", 4}, {"cp", 1}}).value();
  const std::vector<std::pair<std::string, std::string>> ends = {
      {"P(sum)RS(0)", "RRR"}, {"S(0)S(0)S(1)", "S(1)S(0)S(1)"}, {"S(0)P(sum)R", "P(sum)S(0)S(0)"}, {"RRS(0)", "S(0)S(0)S(0)"}};
  for (const auto& pair : ends) {
    const std::string& src = pair.first;
    const std::string& dst = pair.second;
    for (const PlannerKind planner : {PlannerKind::greedy, PlannerKind::graph}) {
      CAPTURE(src);
      CAPTURE(dst);
      const PlanOutcome outcome =
          plan_requests(meshes, uniform_topology(), {request_of(meshes, src, dst, {7, 8})}, rule_options(planner), "");
      REQUIRE(outcome.failures.empty());
      const PlannedRedistribution& planned = outcome.plan.redistributions.at(0);
      CHECK(!planned.steps.empty());
      for (const Step& step : planned.steps) {
        int64_t ranks = 1;
        for (const SubAxis& sub_axis : step.mesh_dims) ranks *= sub_axis.size;
        if (ranks > 1) continue;
        CHECK(step.wire_bytes == 0);
        CHECK(step.predicted_ps == 0);
        CHECK(step.group.empty());
      }
    }
  }
}

TEST_CASE("no-merge keeps the steps apart and warns about nothing") {
  const MeshTable meshes = two_dims(true);
  PlanOptions options = rule_options(PlannerKind::greedy);
  options.merge = false;
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {request_of(meshes, "S(0)S(0)", "RR", {64})}, options, "");
  const PlannedRedistribution& planned = outcome.plan.redistributions.at(0);
  CHECK(planned.trace == "S(0)[0]S(0)[1]->S(0)R->RR");
  CHECK(planned.unmerged_trace == planned.trace);
  CHECK(planned.warnings.empty());
}

TEST_CASE("the native rules merge the largest declared part of a run") {
  MeshTable meshes;
  (void)add_root(meshes, "mesh", 8, {}, {{"a", 2}, {"b", 2}, {"c", 2}}).value();
  (void)declare_flatten(meshes, "mesh", {"a", "b"}).value();
  const Request request = request_of(meshes, "P(sum)P(avg)P(sum)", "RRR", {8});
  PlanOptions options = rule_options(PlannerKind::greedy);
  CHECK(plan_requests(meshes, uniform_topology(), {request}, options, "").plan.redistributions.at(0).trace ==
        "P(sum)P(avg)P(sum)->RP(avg)P(sum)->RRP(sum)->RRR");
  options.rules = Rules::native;
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {request}, options, "");
  const PlannedRedistribution& planned = outcome.plan.redistributions.at(0);
  CHECK(planned.trace == "P(sum)P(avg)P(sum)-->RRP(sum)->RRR");
  CHECK(planned.steps[0].reduce_op == ReduceOp::sum);
  CHECK(planned.steps[0].scale_divisor == 2);
}

TEST_CASE("a step across meshes after one on the source's mesh: each state is written on the mesh that it is on") {
  MeshTable meshes;
  (void)add_root(meshes, "w", 16, {}, {{"a", 2}, {"b", 8}}).value();
  (void)add_slice(meshes, "s", "w", {"a"}).value();
  Request request;
  request.id = "x";
  request.dst_mesh = 1;
  request.tensor.shape = {4096, 4096};
  request.src = default_state("RP(sum)", std::vector<int64_t>{2, 8}, 2);
  request.dst = default_state("R", std::vector<int64_t>{2}, 2);
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), {request}, PlanOptions{}, "");
  REQUIRE(outcome.failures.empty());
  const PlannedRedistribution& planned = outcome.plan.redistributions.at(0);
  REQUIRE(planned.steps.size() >= 2);
  REQUIRE(planned.steps.front().mesh == "w");
  REQUIRE(planned.steps.back().mesh == "s");
  std::string trace = "RP(sum)";
  for (const Step& step : planned.steps)
    trace += "->" + to_text(step.state, step.mesh == "w" ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{2});
  CHECK(planned.trace == trace);
  CHECK(verify_plan(outcome.plan).ok());
  // The proof writes the trace for itself: one on the wrong mesh is refused.
  Plan broken = outcome.plan;
  broken.redistributions[0].trace = broken.redistributions[0].unmerged_trace = "RP(sum)->R->R";
  const Status status = verify_plan(broken);
  REQUIRE(!status);
  CHECK(status.error().message.find("its trace is not that of its steps") != std::string::npos);
}

TEST_CASE("equal questions are planned once and counted each") {
  const MeshTable meshes = two_dims(false);
  std::vector<Request> requests;
  for (int64_t i = 0; i < 100'000; ++i) {
    Request request = request_of(meshes, i % 2 == 0 ? "P(sum)S(0)" : "S(0)S(0)", i % 3 == 0 ? "S(0)S(0)" : "RR", {64 + i % 1000, 16});
    request.id = std::to_string(i);
    request.count = 2;
    requests.push_back(std::move(request));
  }
  const auto start = std::chrono::steady_clock::now();
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), requests, rule_options(PlannerKind::greedy), "");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  MESSAGE("100,000 requests: ", took.count(), " s");
  CHECK(took.count() < 10.0);  // a second on an idle machine
  REQUIRE(outcome.plan.redistributions.size() == requests.size());
  CHECK(outcome.plan.redistributions[1].trace == "S(0)[0]S(0)[1]->S(0)R->RR");
  CHECK(outcome.plan.redistributions[99'999].request.id == "99999");
  int64_t collectives = 0;
  int64_t steps = 0;
  for (const PlannedRedistribution& planned : outcome.plan.redistributions) {
    collectives += 2 * planned.totals.collectives;
    for (const Step& step : planned.steps) steps += step.group.empty() ? 0 : 1;
  }
  CHECK(outcome.plan.totals.collectives == collectives);
  int64_t used = 0;
  for (const PlanGroup& group : outcome.plan.groups) used += group.used_by;
  CHECK(used == steps);
}

}  // namespace
}  // namespace meshplan
