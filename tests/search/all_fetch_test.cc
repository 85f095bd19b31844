// What all ranks of units fetch on one mesh where everything is even.
#include "search/all_fetch.h"

#include <doctest/doctest.h>

#include "cost/topology.h"
#include "search/exchange_floor.h"
#include "small_question.h"

using namespace meshplan;

namespace {

// The most bytes that a rank fetches from outside of its unit, in the first of two phases; of two levels.
int64_t fetched(const PlanProblem& p, const SearchState& from, const SearchState& to, Fetchers fetchers) {
  const State src = to_state(p, from);
  const State dst = to_state(p, to);
  ExchangeQuestion q;
  q.levels = p.levels;
  q.shape = p.tensor.shape;
  q.element_bytes = p.element;
  q.src = &src;
  q.dst = &dst;
  q.phases = 2;
  q.fetchers = fetchers;
  const ExchangeCost cost = price_exchange(q);
  REQUIRE(cost.exact);
  return cost.traffic.phase[0].bytes[1] / cost.traffic.phase[0].denominator;
}

}  // namespace

TEST_CASE(
    "where all is even an exchange that all fetch takes no less than its floor, and where none is offered those that want it fetch no more") {
  int offered = 0;
  int pays = 0;
  int tight = 0;
  int evenly = 0;
  std::mt19937_64 random(20'261'127);
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{2, 4}, {4, 8}, {2, 16}, {2, 2, 4, 2}, {16, 2}, {6, 4}, {3, 8}, {2, 3, 8}}) {
    int64_t ranks = 1;
    for (const int64_t size : sizes) ranks *= size;
    const int64_t inside = ranks == 8 ? 4 : 8;
    Topology three_levels = test::two_levels(inside / 2, 300);
    three_levels.levels.back().ranks = 2 * inside;
    three_levels.levels.push_back({"far", 1'048'576, 12'500, 20'000, 100, 100});
    for (const Topology& topology : {test::two_levels(inside, 500), three_levels, *topology_preset("h100"), *topology_preset("mi300x")}) {
      for (const int64_t times : {1, 64}) {
        test::SmallQuestion question(sizes, topology, {{ranks * ranks * times, 2 * ranks * ranks}, DType::bfloat16});
        for (size_t m = 1; m < sizes.size(); ++m) question.request.dst.shards[1].push_back({static_cast<int32_t>(m), 1, sizes[m]});
        const auto p = question.problem();
        REQUIRE(p);
        REQUIRE(p->even);
        for (int k = 0; k < 400; ++k) {
          const SearchState from = test::random_state(*p, 0, random);
          const SearchState to = test::random_state(*p, 0, random);
          CAPTURE(topology.name);
          CAPTURE(to_text(to_state(*p, from), sizes));
          CAPTURE(to_text(to_state(*p, to), sizes));
          if (!has_two_levels(*p) || from == to) continue;
          if (!may_go(*p, from, to, ExchangeWay::by_all)) {
            // A share is at most a slice and a 128th above the even one, those that want it have one a sixteenth above.
            if (topology.levels.size() > 2) continue;
            const int64_t wanting = fetched(*p, from, to, Fetchers::wanting);
            const int64_t by_all = fetched(*p, from, to, Fetchers::all);
            CHECK(16 * wanting <= 17 * by_all);
            evenly += wanting > 0;
            continue;
          }
          const ExchangeCost cost = price_between(*p, from, to, ExchangeWay::by_all);
          REQUIRE(cost.predicted_ps < INT64_MAX);
          ++offered;
          const int64_t floor = exchange_floor_ps(*p, from, to, ExchangeWay::by_all);
          REQUIRE(floor <= cost.predicted_ps);
          tight += 4 * floor > 3 * cost.predicted_ps;
          pays += cost.predicted_ps < std::min(price_between(*p, from, to, ExchangeWay::one_phase).predicted_ps,
                                               price_between(*p, from, to, ExchangeWay::two_phases).predicted_ps);
        }
      }
    }
  }
  MESSAGE(offered << " offered, " << pays << " pay, floors of " << tight << " are tight; " << evenly << " are missed evenly");
  CHECK(offered > 1'000);
  CHECK(pays > 200);
  CHECK(tight > offered / 3);
  CHECK(evenly > 500);
}

TEST_CASE("two hosts of four: ranks whose host has their part fetch for the others") {
  // S(0)S(0) -> RS(0) on a 2 x b 4: rank 2 of host 0 wants the third quarter, which host 1 has.
  test::SmallQuestion question({2, 4}, test::two_levels(4, 500), {{1024, 64}, DType::float32});
  question.request.src.shards = {{{0, 1, 2}, {1, 1, 4}}, {}};
  question.request.dst.shards = {{{1, 1, 4}}, {}};
  const auto p = question.problem();
  REQUIRE(p);
  CHECK(p->units.empty());
  REQUIRE(may_go(*p, p->source, p->target, ExchangeWay::by_all));
  const int64_t quarter = 1024 * 64 * 4 / 4;
  CHECK(fetched(*p, p->source, p->target, Fetchers::wanting) == quarter);
  CHECK(fetched(*p, p->source, p->target, Fetchers::all) == quarter / 2);
  // Back, host 0 has the quarters that all of its ranks want.
  CHECK(!may_go(*p, p->target, p->source, ExchangeWay::by_all));
}
