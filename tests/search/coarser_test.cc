#include "search/coarser.h"

#include <random>

#include "cost/step_cost.h"
#include "cost/topology.h"
#include "doctest/doctest.h"
#include "search/moves.h"
#include "search/optimal.h"
#include "small_question.h"

using namespace meshplan;

namespace {

// Whole mesh dims, each in some list or in none.
std::vector<std::vector<SubAxis>> whole_dims(const std::vector<int64_t>& sizes, size_t dims, std::mt19937_64& random) {
  std::vector<std::vector<SubAxis>> shards(dims);
  for (size_t m = 0; m < sizes.size(); ++m) {
    const size_t d = random() % (dims + 1);
    if (d < dims) shards[d].push_back({static_cast<int32_t>(m), 1, sizes[m]});
  }
  for (auto& list : shards) std::shuffle(list.begin(), list.end(), random);
  return shards;
}

ExchangeWay way_of(const Edge& edge) {
  if (edge.phases == 1) return ExchangeWay::one_phase;
  return all_fetch(edge.fetchers) ? ExchangeWay::by_all : ExchangeWay::two_phases;
}

// What the edge costs by the question's own moves; slices, which may be several there, are free.
PlanCost priced_again(const PlanProblem& p, const SearchState& from, const Edge& edge) {
  if (edge.op == Op::slice) return {};
  if (edge.op == Op::exchange) return exchange_edge(p, from, edge.to, way_of(edge)).cost;
  std::vector<Edge> moves;
  REQUIRE(collective_moves(p, from, moves));
  PlanCost least{-1, 0, 0};
  for (const Edge& move : moves) {
    if (move.to == edge.to && move.op == edge.op && move.group == edge.group && move.reduced == edge.reduced) least = move.cost;
  }
  return least;
}

}  // namespace

TEST_CASE("a plan of the coarser form is one of the whole question, at the same price") {
  int found_some = 0;
  int steps = 0;
  struct World {
    std::vector<int64_t> sizes;
    std::vector<int64_t> shape;
    int64_t host_ranks;
  };
  // In the last the tensor dim of extent 1 takes part in the question, but not in its coarser form, which cuts the other evenly.
  const std::vector<World> worlds{
      {{16, 2}, {48, 96}, 8}, {{6, 16}, {48, 96}, 8}, {{12, 2}, {48, 96}, 8}, {{12, 4}, {48, 96}, 8}, {{2, 4}, {1, 8}, 2}};
  for (const auto& [sizes, shape, host_ranks] : worlds) {
    test::SmallQuestion question(sizes, test::two_levels(host_ranks, 500), {shape, DType::bfloat16});
    std::mt19937_64 random(5);
    for (int k = 0; k < 30; ++k) {
      question.request.src.shards = whole_dims(sizes, 2, random);
      question.request.dst.shards = whole_dims(sizes, 2, random);
      const auto whole = question.problem();
      REQUIRE(whole);
      const CoarserForm form({&question.meshes, &question.topology, &question.request, &question.options}, question.levels,
                             question.request.dst);
      const Found found = form.find(*whole, INT64_MAX, 40'000'000);
      REQUIRE(found.exists == whole->cut_at_levels);
      if (!found.exists) continue;
      const Found cheapest = find_cheapest(*whole);
      REQUIRE(cheapest.shortcuts.none());
      REQUIRE(cheapest.cost.ps <= found.cost.ps);
      SearchState at = whole->source;
      int64_t ps = 0;
      for (const Edge& edge : found.edges) {
        REQUIRE(priced_again(*whole, at, edge) == edge.cost);
        ps += edge.cost.ps;
        at = edge.to;
        ++steps;
      }
      REQUIRE(at == whole->target);
      REQUIRE(ps == found.cost.ps);
      ++found_some;
      if (found.cost.ps > 0) REQUIRE_FALSE(form.find(*whole, found.cost.ps, 40'000'000).exists);
    }
  }
  REQUIRE(found_some > 50);
  REQUIRE(steps > 50);
}

TEST_CASE("where every group is allowed a hard question has no dearer plan than with the mesh dims alone") {
  const std::vector<int64_t> sizes{48, 6, 2, 2};
  test::SmallQuestion question(sizes, *topology_preset("h100"), {{48, 2048, 5120}, DType::bfloat16});
  question.request.src.shards = {{{0, 1, 48}, {1, 1, 6}}, {{2, 1, 2}}, {}};
  question.request.src.partial = {{{3, 1, 2}, ReduceOp::sum}};
  question.request.dst.shards = {{{1, 1, 6}}, {{2, 1, 2}}, {{3, 1, 2}}};
  const auto cost = [&](GroupPolicy groups) {
    question.options.groups = groups;
    const auto found = plan_optimal({&question.meshes, &question.topology, &question.request, &question.options}, question.levels);
    REQUIRE(found);
    PlannedRedistribution planned;
    planned.request = question.request;
    planned.steps = found->steps;
    price_redistribution(planned, question.meshes, question.levels);
    return planned.totals.predicted_ps;
  };
  const int64_t declared = cost(GroupPolicy::declared);
  CHECK(cost(GroupPolicy::any) <= declared);
}
