// The search against an exhaustive one over the same moves, without bounds, pruning or frozen
// prefixes.
#include <doctest/doctest.h>

#include <map>
#include <queue>

#include "../cost/all_states.h"
#include "../cost/small_mesh.h"
#include "../cost/some_protocols.h"
#include "../verify/random_world.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "search/edge_steps.h"
#include "search/joining_sums.h"
#include "search/moves.h"
#include "search/optimal.h"
#include "search/search.h"

using namespace meshplan;

namespace {

struct Less {
  bool operator()(const SearchState& a, const SearchState& b) const { return std::memcmp(&a, &b, sizeof a) < 0; }
};

// What an exchange takes at least: where shards are even one to another state moves something, in a message of some level.
int64_t least_exchange_ps(const PlanProblem& p) {
  int64_t least_ns = INT64_MAX;
  for (const TopologyLevel& level : p.topology->levels) least_ns = std::min(least_ns, level.latency_ns);
  return p.even && p.by_boxes && !p.may_move_nothing ? least_ns * 1000 : 0;
}

// Least cost from the source to every state, every move tried but those to a state that was reached for no more than a move there takes at least.
// `like`: what its plans may make pending on the way is taken from there.
std::map<SearchState, PlanCost, Less> exhaustive(PlanProblem p, const PlanProblem& like) {
  p.kept = like.kept;
  p.joins = like.joins;
  p.source_op = like.source_op;
  std::map<SearchState, PlanCost, Less> best;
  auto later = [](const std::pair<PlanCost, SearchState>& a, const std::pair<PlanCost, SearchState>& b) { return a.first > b.first; };
  std::priority_queue<std::pair<PlanCost, SearchState>, std::vector<std::pair<PlanCost, SearchState>>, decltype(later)> open(later);
  std::map<uint16_t, std::vector<SearchState>> lists;
  const int64_t least_ps = least_exchange_ps(p);
  best[p.source] = {};
  open.push({{}, p.source});
  while (!open.empty()) {
    auto [cost, at] = open.top();
    open.pop();
    if (best[at] < cost) continue;
    std::vector<Edge> edges;
    collective_moves(p, at, edges);
    for (uint16_t q = at.pending;; q = static_cast<uint16_t>((q - 1) & at.pending)) {
      auto pending = static_cast<uint16_t>(at.pending & ~q);
      auto [list, fresh] = lists.try_emplace(pending);
      if (fresh) {
        SearchState base;
        base.pending = pending;
        all_spreads(p, base, static_cast<uint16_t>(p.all & ~pending), SIZE_MAX, list->second);
      }
      for (const SearchState& to : list->second) {
        const auto reached = best.find(to);
        if (reached != best.end() && (!(cost < reached->second) || cost.ps + least_ps > reached->second.ps)) continue;
        for (const ExchangeWay way : exchange_ways) {
          // Two phases also where the search sees no use in them.
          const bool allowed = way == ExchangeWay::two_phases ? q == 0 && p.topology->levels.size() > 1 : may_go(p, at, to, way);
          if (!allowed) continue;
          const Edge edge = exchange_edge(p, at, to, way);
          edges.push_back(edge);
        }
      }
      if (q == 0) break;
    }
    for (const Edge& edge : edges) {
      PlanCost next{cost.ps + edge.cost.ps, cost.collectives + edge.cost.collectives, cost.wire_bytes + edge.cost.wire_bytes};
      auto [known, fresh] = best.try_emplace(edge.to, next);
      if (!fresh && !(next < known->second)) continue;
      known->second = next;
      open.push({next, edge.to});
    }
  }
  return best;
}

// Sub-axes whose sums joined others.
int64_t joined(const PlanProblem& p, const Found& found) {
  return std::count_if(found.edges.begin(), found.edges.end(),
                       [&](const Edge& e) { return e.op == Op::to_partial && (e.group & p.joins) != 0; });
}

struct Tally {
  int64_t pairs = 0;
  int64_t by_all = 0;  // plans with an exchange that all fetch
  int64_t settled = 0;
};

Tally compare(const std::vector<int64_t>& sizes, const Topology& topology, GroupPolicy groups, const std::vector<int64_t>& shape,
              size_t stride, size_t target_stride = 1) {
  MeshTable meshes;
  Mesh mesh = test::mesh_of(sizes);
  meshes.meshes = {mesh};
  LevelMap levels(mesh, topology);
  PlanOptions options;
  options.groups = groups;
  options.max_memory_bytes = -1;
  Tally tally;
  auto states = all_states(sizes, shape.size(), {ReduceOp::sum});
  for (size_t i = 0; i < states.size(); i += stride) {
    Request request;
    request.tensor = {shape, DType::float32};
    request.src = states[i];
    request.dst = states[i];
    auto from = make_problem(levels, {&meshes, nullptr, &request, &options}, request, request.dst);
    REQUIRE(from.has_value());
    std::map<std::pair<uint16_t, uint16_t>, std::map<SearchState, PlanCost, Less>> best_by_sums;
    for (size_t j = i % target_stride; j < states.size(); j += target_stride) {
      bool more_pending = false;
      for (const PendingSubAxis& p : states[j].partial) {
        more_pending = more_pending || std::find(states[i].partial.begin(), states[i].partial.end(), p) == states[i].partial.end();
      }
      if (i == j || more_pending) continue;
      request.dst = states[j];
      auto problem = make_problem(levels, {&meshes, nullptr, &request, &options}, request, request.dst);
      REQUIRE(problem.has_value());
      Found found = find_cheapest(*problem);
      ++tally.pairs;
      tally.settled += found.settled;
      tally.by_all += std::any_of(found.edges.begin(), found.edges.end(), [](const Edge& e) { return all_fetch(e.fetchers); });
      CAPTURE(to_text(states[i], sizes));
      CAPTURE(to_text(states[j], sizes));
      CAPTURE(topology.levels.size());
      REQUIRE(found.exists);
      CHECK(to_text(found.shortcuts) == "none");
      auto [best_entry, fresh] = best_by_sums.try_emplace({problem->kept, problem->joins});
      if (fresh) best_entry->second = exhaustive(*from, *problem);
      const auto& best = best_entry->second;
      auto known = best.find(problem->target);
      REQUIRE(known != best.end());
      CHECK(found.cost.ps + joining_ps * joined(*problem, found) == known->second.ps);
      CHECK(found.cost.collectives == known->second.collectives);
      CHECK(found.cost.wire_bytes == known->second.wire_bytes);
      // The steps by themselves cost what the search counted.
      PlannedRedistribution planned;
      planned.request = request;
      planned.steps = steps_of_edges(*problem, found.edges, "");
      price_redistribution(planned, meshes, levels);
      CHECK(planned.totals.predicted_ps == found.cost.ps);
      CHECK(planned.totals.wire_bytes == found.cost.wire_bytes);
      if (!problem->even || !problem->exact_levels) {
        // With the bounds of hard questions from the start.
        SearchOptions hard;
        hard.easy_work = 0;
        const Found same = find_cheapest(*problem, hard);
        CHECK(to_text(same.shortcuts) == "none");
        CHECK(same.cost == found.cost);
      }
      // The bound is never above the truth.
      Bounds bound = bound_between(*problem, problem->source, problem->target);
      CHECK(bound.ps <= known->second.ps);
      CHECK(bound.bytes <= known->second.wire_bytes);
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("the search finds what an exhaustive search over the same moves finds") {
  Tally all;
  auto add = [&](Tally t) {
    all.pairs += t.pairs;
    all.settled += t.settled;
  };
  Topology latency_free = uniform_topology();
  latency_free.levels[0].latency_ns = 0;
  latency_free.levels[0].per_peer_ns = 0;
  for (GroupPolicy groups : {GroupPolicy::any, GroupPolicy::declared}) {
    for (int64_t side : {64, 4096}) {
      add(compare({2, 4}, uniform_topology(), groups, {side, side}, 1));
      add(compare({2, 4}, test::two_levels(4, 500), groups, {side, side}, 1));
      add(compare({2, 4}, test::two_levels(2, 0), groups, {side, side}, 1));
      add(compare({2, 4}, test::with_protocols(test::two_levels(4, 500)), groups, {side, side}, 1));
      add(compare({2, 4}, test::with_nccl(test::two_levels(2, 0)), groups, {side, side}, 3));
      add(compare({2, 2, 2}, test::with_protocols(test::two_levels(4, 3'000)), groups, {side, side}, 5));
      add(compare({2, 2, 2}, test::with_protocols(test::two_levels(2, 0)), groups, {side, side}, 7));
      add(compare({2, 4}, latency_free, groups, {side, side}, 1));
      add(compare({2, 2, 2}, test::two_levels(4, 0), groups, {side, side}, 6));
      add(compare({2, 2, 2}, test::two_levels(2, 500), groups, {side, side}, 5));
      add(compare({2, 2, 2}, uniform_topology(), groups, {side, side}, 7));
    }
  }
  MESSAGE(all.pairs << " pairs, " << all.settled << " states settled");
}

TEST_CASE("five mesh dims: the search finds what an exhaustive search finds") {
  const std::vector<int64_t> five(5, 2);
  Tally t = compare(five, test::two_levels(4, 0), GroupPolicy::any, {4096, 4096}, 3'001, 71);
  t.pairs += compare(five, test::two_levels(4, 500), GroupPolicy::declared, {64, 64}, 4'001, 71).pairs;
  CHECK(t.pairs > 50);
}

TEST_CASE("uneven extents: the search finds what an exhaustive search finds") {
  Tally t = compare({2, 3}, test::two_levels(3, 500), GroupPolicy::any, {10, 7}, 1);
  t.pairs += compare({2, 2}, test::two_levels(2, 500), GroupPolicy::declared, {5, 3}, 1).pairs;
  t.pairs += compare({2, 3}, uniform_topology(), GroupPolicy::any, {2, 4}, 2).pairs;
  // Fewer elements than ranks, and latencies that tell no plan from another.
  t.pairs += compare({7, 3}, test::one_level(0, 500), GroupPolicy::any, {2, 2}, 1).pairs;
  t.pairs += compare({4, 5}, test::two_levels(4, 200), GroupPolicy::declared, {3, 6}, 1).pairs;
  t.pairs += compare({2, 2, 3}, test::one_level(1'000, 500), GroupPolicy::any, {3, 2}, 5, 3).pairs;
  // Bytes decide, and units cut mesh dims.
  Topology slow = test::two_levels(4, 500);
  for (TopologyLevel& level : slow.levels) level.mb_per_s /= 1'000;
  t.pairs += compare({2, 3}, slow, GroupPolicy::any, {1000, 70}, 1).pairs;
  t.pairs += compare({2, 3, 2}, slow, GroupPolicy::declared, {600, 50}, 7, 2).pairs;
  t.pairs += compare({3, 4}, slow, GroupPolicy::any, {4800, 48}, 3).pairs;
  // All ranks of a unit fetch what few of them want.
  slow.levels[1].mb_per_s /= 8;
  Tally few_want = compare({2, 3}, slow, GroupPolicy::any, {1000, 70}, 1);
  for (const Tally& more :
       {compare({4, 3}, slow, GroupPolicy::declared, {2, 4801}, 2), compare({5, 2}, slow, GroupPolicy::any, {7000, 3}, 1)}) {
    few_want.pairs += more.pairs;
    few_want.by_all += more.by_all;
  }
  t.pairs += few_want.pairs;
  CHECK(few_want.by_all > 30);
  MESSAGE(few_want.by_all << " of " << few_want.pairs << " plans are fetched by all");
  CHECK(t.pairs > 400);
}

TEST_CASE("uneven extents under protocols, whose groups may start long before an exchange does") {
  // Random world 34785: a state was taken up twice, and an exchange from it never looked at.
  Tally t;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    Topology topology = test::two_levels(3, seed % 2 == 0 ? 500 : 0);
    topology.levels[0].latency_ns = random.one_in(2) ? 25'000 : 10'000;
    topology.levels[1].latency_ns = 10'000;
    for (TopologyLevel& level : topology.levels) level.mb_per_s = 1 + random.below(10'000);
    topology = test::with_random_protocols(random, topology);
    t.pairs += compare({3, 2}, topology, GroupPolicy::any, {45}, 1).pairs;
    t.pairs += compare({3, 2}, topology, GroupPolicy::any, {4500, 7}, 3, 2).pairs;
  }
  CHECK(t.pairs > 1'000);
}
