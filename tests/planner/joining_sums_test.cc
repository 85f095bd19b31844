// Sums that join others on the way: a shard or a copy becomes a contribution as well, and one reduction does what a gather would be one step more
// for (PlanProblem::joins).
#include <doctest/doctest.h>

#include "../cost/small_mesh.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "search/joining_sums.h"

namespace meshplan {
namespace {

struct Asked {
  std::vector<int64_t> sizes;
  std::vector<int64_t> shape;
  State src;
  State dst;
};

PlannedRedistribution planned_on(const Asked& asked, const char* topology, PlanOptions options = {}) {
  MeshTable meshes;
  meshes.meshes = {test::mesh_of(asked.sizes)};
  options.groups = GroupPolicy::any;
  Request request;
  request.id = "x";
  request.tensor = {asked.shape, DType::float32};
  request.src = asked.src;
  request.dst = asked.dst;
  // Verified by plan_requests.
  PlanOutcome outcome = plan_requests(meshes, *topology_preset(topology), {request}, options, "");
  REQUIRE(outcome.failures.empty());
  return std::move(outcome.plan.redistributions.front());
}

State state_of(std::vector<std::vector<SubAxis>> shards, std::vector<PendingSubAxis> partial = {}) {
  State state;
  state.shards = std::move(shards);
  state.partial = std::move(partial);
  return state;
}

}  // namespace

TEST_CASE("a shard joins a sum where an all_gather would be one step more") {
  const Asked asked{{8, 8}, {1'024}, state_of({{{0, 1, 8}}}, {{{1, 1, 8}, ReduceOp::sum}}), state_of({{}})};
  const PlannedRedistribution planned = planned_on(asked, "uniform");
  CHECK(planned.trace == "S(0)P(sum)->P(sum)P(sum)-->RR");
  CHECK(planned.totals.collectives == 1);
  CHECK(planned.totals.predicted_ps < 10'200'000);  // 20.0 us by an all_reduce and an all_gather
  CHECK(planned.proven_gap_ps == 0);
}

TEST_CASE("an activation of 16 rows on 24 x 6 ranks joins the sum") {
  const Asked asked{{24, 6}, {16, 1'000, 768}, state_of({{{0, 1, 24}}, {}, {}}, {{{1, 1, 6}, ReduceOp::sum}}), state_of({{}, {}, {}})};
  const PlannedRedistribution planned = planned_on(asked, "h100");
  CHECK(planned.trace == "S(0)P(sum)->P(sum)P(sum)-->RR");
  CHECK(planned.proven_gap_ps == 0);
}

TEST_CASE("what joins an average is a sum beside it, divided by the average's ranks alone") {
  const Asked asked{{8, 8}, {1'024}, state_of({{{0, 1, 8}}}, {{{1, 1, 8}, ReduceOp::avg}}), state_of({{}})};
  const PlannedRedistribution planned = planned_on(asked, "uniform");
  CHECK(planned.trace == "S(0)P(avg)->P(sum)P(avg)-->RR");
  REQUIRE(planned.steps.size() == 2);
  CHECK(planned.steps[1].reduce_op == ReduceOp::sum);
  CHECK(planned.steps[1].scale_divisor == 8);
}

TEST_CASE("sums join neither a maximum nor nothing, and not for bytes that take less than joining_ps") {
  const Asked maximum{{8, 8}, {1'024}, state_of({{{0, 1, 8}}}, {{{1, 1, 8}, ReduceOp::max}}), state_of({{}})};
  CHECK(planned_on(maximum, "uniform").totals.collectives == 2);
  const Asked none{{8, 8}, {1'024}, state_of({{{0, 1, 8}}}), state_of({{}})};
  CHECK(planned_on(none, "uniform").trace == "S(0)R->RR");
  // By parts of 10 elements a reduction would take 80 ps less.
  const Asked few{{2, 8, 4}, {20}, state_of({{}}, {{{1, 1, 8}, ReduceOp::sum}, {{2, 1, 4}, ReduceOp::sum}}), state_of({{}})};
  for (const Step& step : planned_on(few, "uniform").steps) CHECK(step.op != Op::to_partial);
}

TEST_CASE("with one reduction all sums join that one") {
  PlanOptions options;
  options.one_reduction = true;
  const Asked asked{{8, 8}, {1'024}, state_of({{{0, 1, 8}}}, {{{1, 1, 8}, ReduceOp::sum}}), state_of({{}})};
  const PlannedRedistribution planned = planned_on(asked, "uniform", options);
  CHECK(planned.totals.collectives == 1);
}

TEST_CASE("a search that takes hard bounds from the start joins sums as well") {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{144, 768}, {16, 768}}) {
    MeshTable meshes;
    meshes.meshes = {test::mesh_of({24, 6})};
    Request request;
    request.tensor = {shape, DType::float32};
    request.src = state_of({{{0, 1, 24}}, {}}, {{{1, 1, 6}, ReduceOp::sum}});
    request.dst = state_of({{}, {}});
    PlanOptions options;
    options.groups = GroupPolicy::any;
    const Topology topology = *topology_preset("h100");
    const LevelMap levels(meshes.meshes[0], topology);
    const auto problem = make_problem(levels, {&meshes, &topology, &request, &options}, request, request.dst);
    REQUIRE(problem);
    SearchOptions hard;
    hard.easy_work = 0;
    const Found found = find_cheapest(*problem);
    CHECK(find_cheapest(*problem, hard).cost == found.cost);
    PlanProblem alone = *problem;
    alone.joins = 0;
    CHECK(found.cost.ps + most_joining_ps(*problem) < find_cheapest(alone).cost.ps);
  }
}

}  // namespace meshplan
