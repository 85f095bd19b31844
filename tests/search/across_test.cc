// Plans across meshes: memory limits, and targets in any order. That they are the cheapest,
// tests/planner/bounds_across_test.cc holds against every way there is.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "cost/step_cost.h"
#include "cost/topology.h"
#include "search/optimal.h"

namespace meshplan {
namespace {

MeshTable train_and_serve() {
  MeshTable table;
  REQUIRE(add_root(table, "train", 8, {}, {{"a", 2}, {"b", 4}}).ok());
  const std::vector<int64_t> ranks{8, 9, 10, 11, 12, 13, 14, 15};
  REQUIRE(add_root(table, "serve", 8, ranks, {{"x", 4}, {"y", 2}}).ok());
  return table;
}

Request request_of(const std::string& src, const std::string& dst) {
  Request request;
  request.dst_mesh = 1;
  request.tensor = {{64, 48}, DType::float32};
  request.src = *parse_state(src, std::vector<int64_t>{2, 4}, 2);
  request.dst = *parse_state(dst, std::vector<int64_t>{4, 2}, 2);
  return request;
}

struct Asked {
  Result<StepList> list;
  Totals totals;
};

Asked ask(const Request& request, int64_t max_memory_bytes) {
  const MeshTable table = train_and_serve();
  const Topology topology = *topology_preset("h100");
  PlanOptions options;
  options.max_memory_bytes = max_memory_bytes;
  Asked asked{plan_optimal({&table, &topology, &request, &options}), {}};
  if (!asked.list.ok()) return asked;
  PlannedRedistribution planned;
  planned.request = request;
  planned.steps = asked.list->steps;
  price_redistribution(planned, table, topology);
  asked.totals = planned.totals;
  return asked;
}

}  // namespace

TEST_CASE("with one_reduction what the crossing reduces is reduced by no step before it") {
  // To reduce b, make its sums again and cross with them took least: seed 1206574 of the oracle, refused as two reductions.
  MeshTable table;
  REQUIRE(add_root(table, "train", 48, {}, {{"a", 2}, {"b", 8}, {"c", 3}}).ok());
  REQUIRE(add_root(table, "serve", 2, {49, 50}, {{"k", 2}}).ok());
  Topology topology;
  topology.levels = {{"inside", 3, 10'000, 0, 0}, {"outside", 9, 5'000, 1'000, 500}};
  topology.levels[1].switch_mb_per_s = 70'000;
  Protocol slow;
  slow.name = "slow";
  slow.base_ns = 14'000;
  slow.switch_ns = 1;
  slow.levels = {{3'400, 500, 0, 500}, {3'400, 10'000, 0, 500}};
  topology.protocols = {slow};
  const std::vector<int64_t> sizes{2, 8, 3};
  for (const char* src : {"P(sum)P(sum)S(0)", "P(sum)P(sum)R", "P(sum)S(0)P(sum)", "RP(sum)S(0)"}) {
    CAPTURE(src);
    Request request;
    request.dst_mesh = 1;
    request.tensor = {{5}, DType::int64};
    request.src = *parse_state(src, sizes, 1);
    request.dst = *parse_state("S(0)", std::vector<int64_t>{2}, 1);
    PlanOptions options;
    options.one_reduction = true;
    options.max_memory_bytes = -1;
    const auto list = plan_optimal({&table, &topology, &request, &options});
    REQUIRE(list.ok());
    CHECK(std::count_if(list->steps.begin(), list->steps.end(), [](const Step& step) { return step.reduce_op.has_value(); }) == 1);
  }
}

TEST_CASE("the plan that gathers first and crosses straight is looked at before the work is used up") {
  // 261 states of train, whose ways took all the work: the plan was 1.7 times as long.
  MeshTable table;
  REQUIRE(add_root(table, "train", 24, {}, {{"dp", 6}, {"fsdp", 2}, {"tp", 2}}).ok());
  REQUIRE(add_root(table, "serve", 8, {12, 13, 14, 15, 16, 17, 18, 19}, {{"dp", 4}, {"ep", 2}}).ok());
  const Topology topology = *topology_preset("h100");
  PlanOptions options;
  options.groups = GroupPolicy::any;
  options.max_memory_bytes = -1;
  const auto ps_of = [&](size_t dst_mesh, const State& dst) {
    PlannedRedistribution planned;
    planned.request.dst_mesh = dst_mesh;
    planned.request.tensor = {{128'256, 8'192}, DType::bfloat16};
    planned.request.src = *parse_state("S(1)S(0)R", std::vector<int64_t>{6, 2, 2}, 2);
    planned.request.dst = dst;
    const auto list = plan_optimal({&table, &topology, &planned.request, &options});
    REQUIRE(list.ok());
    planned.steps = list->steps;
    price_redistribution(planned, table, topology);
    return planned.totals.predicted_ps;
  };
  // What serve wants lies there once train has it all on every rank.
  const int64_t gathered_ps = ps_of(0, *parse_state("RRR", std::vector<int64_t>{6, 2, 2}, 2));
  CHECK(ps_of(1, *parse_state("RS(1)", std::vector<int64_t>{4, 2}, 2)) <= gathered_ps);
}

TEST_CASE("the least peak that a refusal names is one that a plan has, and none is below it") {
  for (const char* src : {"S(0)S(1)", "RR", "P(sum)S(0)", "RS(0)", "P(sum)P(sum)"}) {
    for (const char* dst : {"RR", "S(0)S(1)", "RS(1)", "S(1)[1]S(1)[0]", "P(sum)R"}) {
      CAPTURE(src);
      CAPTURE(dst);
      const Request request = request_of(src, dst);
      const Asked refused = ask(request, 1);
      REQUIRE(!refused.list.ok());
      const std::string& message = refused.list.error().message;
      const std::string before = "the least peak that exists is ";
      const size_t at = message.find(before);
      REQUIRE(at != std::string::npos);
      const int64_t least = std::stoll(message.substr(at + before.size()));
      const Asked fits = ask(request, least);
      REQUIRE(fits.list.ok());
      CHECK(fits.totals.peak_bytes == least);
      CHECK(!ask(request, least - 1).list.ok());
      const Asked free = ask(request, -1);
      REQUIRE(free.list.ok());
      CHECK(free.totals.predicted_ps <= fits.totals.predicted_ps);
    }
  }
}

TEST_CASE("in any order of the target a plan takes no longer than in each") {
  Request request = request_of("S(0)[0]S(0)[1]", "S(0)[0]S(0)[1]");
  const int64_t one = ask(request, 0).totals.predicted_ps;
  request.dst = *parse_state("S(0)[1]S(0)[0]", std::vector<int64_t>{4, 2}, 2);
  const int64_t other = ask(request, 0).totals.predicted_ps;
  request.any_dst_order = true;
  const Asked any = ask(request, 0);
  REQUIRE(any.list.ok());
  CHECK(any.list->shortcuts.none());
  CHECK(any.totals.predicted_ps == std::min(one, other));
  CHECK(any.list->steps.back().state == any.list->dst);
}

}  // namespace meshplan
