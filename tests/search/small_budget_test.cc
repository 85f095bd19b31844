// A search whose work is used up: what it says a plan takes at least, against the cheapest plan.
#include <random>

#include "../cost/some_protocols.h"
#include "cost/topology.h"
#include "doctest/doctest.h"
#include "search/search.h"
#include "small_question.h"

using namespace meshplan;

TEST_CASE("a search that ends early says no more than what the cheapest plan takes") {
  struct World {
    std::vector<int64_t> sizes;
    std::vector<int64_t> shape;
    Topology topology;
  };
  const std::vector<World> worlds{
      {{4, 2, 4}, {4, 32, 96}, test::two_levels(8, 500)},
      {{8, 5}, {2, 40, 7}, test::two_levels(6, 300)},
      {{4, 4, 3}, {1, 9, 50}, test::two_levels(4, 700)},
      {{3, 8, 2}, {20, 7, 3}, uniform_topology()},
      {{2, 4, 2}, {64, 64}, test::two_levels(4, 500)},
      {{2, 2, 2, 2}, {32, 32}, test::two_levels(4, 200)},
      {{4, 6}, {25, 7}, test::with_protocols(test::two_levels(6, 500))},
  };
  int ended_early = 0;
  int raised = 0;  // above what is known without a search
  for (const World& w : worlds) {
    test::SmallQuestion question(w.sizes, w.topology, {w.shape, DType::bfloat16});
    question.request.reduce_dtype = DType::float32;
    const auto made = question.problem();
    REQUIRE(made);
    std::mt19937_64 random(17);
    for (int k = 0; k < 40; ++k) {
      PlanProblem p = *made;
      p.source = test::random_state(p, k % 3 == 0 ? static_cast<uint16_t>(random() & p.all) : uint16_t{0}, random);
      p.target = test::random_state(p, 0, random);
      p.source_pending = p.source.pending;
      p.state_limit = INT64_MAX;
      CAPTURE(to_text(to_state(p, p.source), w.sizes));
      CAPTURE(to_text(to_state(p, p.target), w.sizes));
      SearchOptions whole;
      whole.work_budget = 400'000'000;
      const Found cheapest = find_cheapest(p, whole);
      if (!cheapest.exists || !cheapest.shortcuts.none()) continue;
      const int64_t bound = bound_between(p, p.source, p.target).ps;
      for (int64_t budget = 1'000; budget < 2 * cheapest.work; budget *= 3) {
        CAPTURE(budget);
        SearchOptions some;
        some.work_budget = budget;
        some.easy_work = budget / 8;
        const Found found = find_cheapest(p, some);
        REQUIRE(found.least_ps <= cheapest.cost.ps);
        if (!found.exists) continue;
        REQUIRE(found.cost.ps >= cheapest.cost.ps);
        REQUIRE((!found.shortcuts.none() || found.cost.ps == cheapest.cost.ps));
        ended_early += found.shortcuts.has(Shortcut::work_budget);
        raised += found.shortcuts.has(Shortcut::work_budget) && found.least_ps > bound;
      }
    }
  }
  CHECK(ended_early > 200);
  CHECK(raised > 50);
  MESSAGE(ended_early << " ended early, " << raised << " above the bound");
}

TEST_CASE("so it does of scalars, whose sums others join") {
  // Outer links have the lower latency, and reduce in switches: by way of all ranks the sum of two takes less.
  Topology topology = uniform_topology();
  topology.levels = {topology.levels.front(), topology.levels.front()};
  topology.levels[0].ranks = 2;
  topology.levels[1].ranks = 4;
  topology.levels[0].latency_ns = 10'000;
  topology.levels[1].latency_ns = 3'000;
  topology.levels[0].per_peer_ns = 50;
  topology.levels[1].per_peer_ns = 1;
  for (TopologyLevel& level : topology.levels) {
    level.mb_per_s = 20'000;
    level.switch_mb_per_s = 40'000;
  }
  topology.levels[1].peer_mb_per_s = 5'000;
  Protocol protocol{"p0", 6'600, false, 5'000, {}};
  protocol.levels.resize(2);
  protocol.levels[0].hop_ns = 3'400;
  protocol.levels[1].hop_ns = 1'000;
  protocol.levels[1].share = 500;
  topology.protocols = {protocol};
  test::SmallQuestion question({2, 3, 2}, topology, {{1}, DType::bfloat16});
  question.request.tensor.shape = {};
  question.request.reduce_dtype = DType::float32;
  question.request.src.shards = question.request.dst.shards = {};
  question.request.src.partial = {{{2, 1, 2}, ReduceOp::sum}};
  question.options.max_memory_bytes = -1;
  const auto p = question.problem();
  REQUIRE(p);
  const Found cheapest = find_cheapest(*p, {});
  REQUIRE(cheapest.exists);
  REQUIRE(cheapest.shortcuts.none());
  for (int64_t budget = 500; budget < 2 * cheapest.work; budget += budget / 4) {
    CAPTURE(budget);
    SearchOptions some;
    some.work_budget = budget;
    some.easy_work = budget / 10;
    REQUIRE(find_cheapest(*p, some).least_ps <= cheapest.cost.ps);
  }
}
