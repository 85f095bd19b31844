// Steps on one mesh of plans, across meshes or on that one alone, in which all ranks of units share the fetching.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "planner/small_bundle.h"
#include "replay_host/host.h"
#include "search/optimal.h"
#include "verify/verify.h"

using namespace meshplan;

namespace {

// 4 ranks of a host to 16 others in no order: most groups of four that want one box lie in several hosts.
MeshTable shuffled() {
  MeshTable table;
  REQUIRE(add_root(table, "train", 4, {}, {{"a", 2}, {"b", 2}}).ok());
  REQUIRE(add_root(table, "serve", 16, {14, 18, 9, 5, 13, 6, 7, 15, 17, 11, 12, 8, 4, 10, 19, 16}, {{"x", 4}, {"y", 4}}).ok());
  return table;
}

const std::vector<Step>& steps_of(const Plan& plan) { return std::as_const(plan.redistributions[0].steps).list(); }

bool shares(const Plan& plan) {
  return std::any_of(steps_of(plan).begin(), steps_of(plan).end(), [](const Step& step) { return step.fetched_by_all; });
}

}  // namespace

TEST_CASE("behind the crossing ranks of a host fetch for those whose group lies in others, but in no bundle") {
  const MeshTable table = shuffled();
  const std::vector<Request> requests{request_of(table, "w", {4096, 4096}, "S(0)S(1)", "S(0)R", 2)};
  const auto alone = [&](int64_t max_memory_bytes) {
    PlanOptions options;
    options.max_memory_bytes = max_memory_bytes;
    PlanOutcome outcome = plan_requests(table, hosts_of(4, 1000), requests, options, "");
    REQUIRE(outcome.failures.empty());
    const Status status = verify_plan(outcome.plan);
    CHECK_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message));
    return outcome.plan;
  };
  const Plan plan = alone(0);
  REQUIRE(steps_of(plan).size() == 2);
  const Step& last = steps_of(plan).back();
  CHECK(last.fetched_by_all);
  CHECK(last.phases == 2);
  // What ranks fetch for others takes staging.
  const Plan less = alone(last.peak_bytes - 1);
  CHECK(less.redistributions[0].totals.peak_bytes < last.peak_bytes);
  CHECK(less.redistributions[0].totals.predicted_ps > plan.redistributions[0].totals.predicted_ps);
  const Plan bundled = planned(table, hosts_of(4, 1000), requests, {});
  const Status status = verify_plan(bundled);
  CHECK_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message));
  CHECK(!shares(bundled));
}

TEST_CASE("what rounds run is planned without far shares, and fetched by those that want it") {
  const Topology topology = hosts_of(4, 1000);
  const MeshTable several = two_roots({{"dp", 3}, {"tp", 4}}, {{"dp", 4}}, 0);
  const std::vector<std::pair<MeshTable, Request>> asked{{shuffled(), request_of(shuffled(), "w", {4096, 4096}, "S(0)S(1)", "S(0)R", 1)},
                                                         {several, request_of(several, "w", {4096, 4096}, "RS(0)", "S(1)", 1)}};
  for (const auto& [table, request] : asked) {
    const LevelMap levels(table.meshes[0], topology);
    const PlanOptions options;
    for (const bool in_rounds : {false, true}) {
      work::Budget budget{options.work_budget};
      const auto list = plan_optimal({&table, &topology, &request, &options, in_rounds}, levels, budget, {});
      REQUIRE(list.ok());
      const bool neither =
          std::none_of(list->steps.begin(), list->steps.end(), [](const Step& step) { return step.fetched_by_all || step.far_64ths > 0; });
      CHECK(neither == in_rounds);
    }
  }
}

TEST_CASE("a plan by a step that all fetch is no cheaper than one that is proven without it") {
  // The limit leaves out the straight way. The way by RS(0)R took less once all fetched its second step, which no search had known.
  MeshTable table;
  REQUIRE(add_root(table, "w", 12, {}, {{"a", 6}, {"b", 2}}).ok());
  REQUIRE(add_unflatten(table, "v1", "w", "b", {2, 1}, {"o", "i"}).ok());
  REQUIRE(add_transpose(table, "v2", "v1", {"a", "o", "i"}).ok());
  REQUIRE(
      add_root(table, "t", 16, {25, 27, 9, 4, 11, 22, 12, 2, 23, 0, 26, 17, 21, 1, 8, 3}, {{"k", 1}, {"l", 8}, {"m", 2}, {"n", 1}}).ok());
  Topology topology;
  topology.levels = {{"inside", 5, 1'000'000, 0, 0}, {"outside", 20, 500'000, 0, 3'000}};
  topology.levels[0].switch_mb_per_s = 1'000;
  topology.levels[1].peer_mb_per_s = 3'000;
  topology.levels[1].peer_bytes = 5'000;
  Protocol trees;
  trees.name = "trees";
  trees.trees = true;
  trees.near_bytes = 1;
  trees.levels = {{14'000, 10'000, 0, 10'000, 1}, {14'000, 500, 0, 10'000, 1}};
  topology.protocols = {trees};
  const auto ps_within = [&](int64_t max_memory_bytes) {
    Request request;
    request.id = "r4";
    request.tensor = {{1}, DType::int64};
    request.src_mesh = *find_mesh(table, "v2");
    request.dst_mesh = *find_mesh(table, "t");
    request.src = state_of(table, request.src_mesh, "P(product)RR", 1);
    request.dst = state_of(table, request.dst_mesh, "RRRR", 1);
    PlanOptions options;
    options.max_memory_bytes = max_memory_bytes;
    const PlanOutcome outcome = plan_requests(table, topology, {request}, options, "");
    REQUIRE(outcome.failures.empty());
    const PlannedRedistribution& planned = outcome.plan.redistributions[0];
    CHECK(planned.shortcuts.none());
    return planned.totals.predicted_ps;
  };
  CHECK(ps_within(-1) <= ps_within(64));
}

TEST_CASE("where all is even ranks of a host fetch for those whose part it has not: planned, proven, verified and run") {
  struct Asked {
    Dims dims;
    std::vector<int64_t> shape;
    std::string src;
    std::string dst;
  };
  // Digits line up; and those of 6 and 4, where hosts of 8 cut the 6 into threes, do not.
  for (const Asked& asked : {Asked{{{"dp", 8}, {"tp", 4}}, {128, 4096, 1408}, "S(1)[0]S(1)[1]", "RS(1)"},
                             Asked{{{"dp", 3}, {"tp", 8}}, {12288, 24576}, "S(1)S(0)", "S(1)[1]S(1)[0]"},
                             Asked{{{"a", 6}, {"b", 4}}, {1536, 3072}, "S(0)S(1)", "S(1)S(0)"}}) {
    CAPTURE(asked.dst);
    const MeshTable table = one_root(asked.dims);
    const Topology topology = *topology_preset("h100");
    const Request request = request_of(table, "w", asked.shape, asked.src, asked.dst, 1);
    PlanOptions options;
    options.groups = GroupPolicy::any;
    const PlanOutcome outcome = plan_requests(table, topology, {request}, options, no_spec);
    REQUIRE(outcome.failures.empty());
    const Plan& plan = outcome.plan;
    CHECK(shares(plan));
    const PlannedRedistribution& planned = plan.redistributions[0];
    CHECK(planned.proven_gap_ps == 0);
    const Status status = verify_plan(plan);
    CHECK_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message));
    // The same exchange by those that want a box, in one phase and in two.
    const LevelMap levels(table.meshes[0], topology);
    for (const int phases : {1, 2}) {
      ExchangeQuestion q;
      q.levels = &levels;
      q.shape = request.tensor.shape;
      q.element_bytes = 2;
      q.src = &request.src;
      q.dst = &request.dst;
      q.phases = phases;
      q.far_too = phases == 1;
      CHECK(planned.totals.predicted_ps < price_exchange(q).predicted_ps);
    }
    ReplayOptions replay;
    replay.threads = 2;
    const auto report = replay_on_host(plan, replay);
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
    CHECK_MESSAGE(all_right(*report), to_text(*report));
  }
}

TEST_CASE("no random even plan that is proven is dearer than what all ranks of hosts may fetch at once") {
  std::mt19937_64 random(20'261'127);
  const Topology topology = *topology_preset("h100");
  int fetched = 0;
  int compared = 0;
  for (const Dims& dims :
       {Dims{{"a", 2}, {"b", 8}}, Dims{{"a", 8}, {"b", 4}}, Dims{{"a", 2}, {"b", 4}, {"c", 4}}, Dims{{"a", 6}, {"b", 4}}}) {
    const MeshTable table = one_root(dims);
    const LevelMap levels(table.meshes[0], topology);
    const std::string all_whole(dims.size(), 'R');
    for (int round = 0; round < 60; ++round) {
      Request request = request_of(table, "w", {3072 << random() % 4, 3072}, all_whole, all_whole, 1);
      for (State* state : {&request.src, &request.dst}) {
        for (size_t m = 0; m < dims.size(); ++m) {
          const size_t d = random() % 3;
          if (d < 2) state->shards[d].push_back({static_cast<int32_t>(m), 1, dims[m].second});
        }
        for (auto& order : state->shards) std::shuffle(order.begin(), order.end(), random);
      }
      PlanOptions options;
      options.groups = GroupPolicy::any;
      const PlanOutcome outcome = plan_requests(table, topology, {request}, options, no_spec);
      REQUIRE(outcome.failures.empty());
      fetched += shares(outcome.plan);
      const auto problem = make_problem(levels, {&table, nullptr, &request, &options}, request, request.dst);
      REQUIRE(problem);
      if (!may_go(*problem, problem->source, problem->target, ExchangeWay::by_all)) continue;
      const PlannedRedistribution& planned = outcome.plan.redistributions[0];
      CAPTURE(planned.trace);
      CHECK(planned.totals.predicted_ps - planned.proven_gap_ps <=
            price_between(*problem, problem->source, problem->target, ExchangeWay::by_all).predicted_ps);
      ++compared;
    }
  }
  MESSAGE(fetched << " plans are fetched by all, " << compared << " exchanges compared");
  CHECK(fetched >= 5);
  CHECK(compared > 30);
}
