#include "search/unit_needs.h"

#include <random>

#include "../cost/some_protocols.h"
#include "cost/topology.h"
#include "doctest/doctest.h"
#include "search/exchange_floor.h"
#include "search/moves.h"
#include "small_question.h"

using namespace meshplan;

namespace {

struct NeedQuestion {
  std::vector<int64_t> sizes;
  std::vector<int64_t> shape;
  int64_t inside;
};

// The ends of an exchange: every third time sums are pending, of which it may reduce some, every
// fourth time some were made on the way, which stay.
struct Ends {
  Ends(const PlanProblem& p, int k, std::mt19937_64& random) {
    const auto pending = static_cast<uint16_t>(k % 3 == 0 ? random() & p.all : 0);
    const auto made = static_cast<uint16_t>(k % 4 == 0 ? random() & p.all & ~pending : 0);
    const auto left = static_cast<uint16_t>(k % 6 == 0 ? pending & random() : pending);
    from = test::random_state(p, pending | made, random);
    to = test::random_state(p, left | made, random);
    from.pending = pending;
    to.pending = left;
    from.made = to.made = made;
  }
  SearchState from;
  SearchState to;
};

}  // namespace

TEST_CASE("no exchange takes less than what units need, and no plan less than their bound") {
  int floors = 0;
  int grids = 0;
  int told_at_least = 0;
  int by_all = 0;
  int by_all_pays = 0;
  std::vector<NeedQuestion> worlds{NeedQuestion{{2, 4, 2}, {64, 48}, 6}, NeedQuestion{{3, 4}, {24, 36}, 5},
                                   NeedQuestion{{2, 9, 2}, {72, 36}, 8}, NeedQuestion{{4, 6}, {25, 7}, 9},
                                   NeedQuestion{{2, 8, 4}, {1024}, 24},  NeedQuestion{{3, 4, 2}, {10, 9}, 8},
                                   NeedQuestion{{2, 3, 8}, {7, 20}, 4}};
  // The last ones again, of so many elements that bytes decide who fetches.
  const size_t small = worlds.size();
  for (size_t i = 3; i < small; ++i) {
    worlds.push_back(worlds[i]);
    worlds.back().shape.back() *= 4001;
  }
  for (const NeedQuestion& w : worlds) {
    test::SmallQuestion question(w.sizes, test::two_levels(w.inside, 500), {w.shape, DType::bfloat16});
    question.request.reduce_dtype = DType::float32;
    const auto p = question.problem();
    REQUIRE(p);
    REQUIRE(!p->units.empty());
    // The same as if no unit were a grid, where the boxes of members are listed.
    PlanProblem listed = *p;
    for (UnitRanks& unit : listed.units) unit.grid = false;
    std::mt19937_64 random(7);
    for (int k = 0; k < 400; ++k) {
      const Ends ends(*p, k, random);
      const SearchState& from = ends.from;
      const SearchState& to = ends.to;
      CAPTURE(to_text(to_state(*p, from), w.sizes));
      CAPTURE(to_text(to_state(*p, to), w.sizes));
      for (const ExchangeWay way : test::ways_between(*p, from, to)) {
        CAPTURE(static_cast<int>(way));
        const ExchangeCost cost = price_between(*p, from, to, way);
        REQUIRE(cost.exact);
        const bool all_fetch = way == ExchangeWay::by_all;
        by_all += all_fetch;
        by_all_pays += all_fetch && cost.predicted_ps < price_between(*p, from, to, ExchangeWay::two_phases).predicted_ps;
        const int64_t floor = unit_exchange_floor_ps(*p, from, to, way);
        REQUIRE(floor <= cost.predicted_ps);
        floors += floor > 0;
        REQUIRE(close_exchange_floor_ps(*p, from, to, way) <= cost.predicted_ps);
        const int64_t bound = unit_bound_ps(*p, from, to, pairs_of_lists(*p, from, to));
        REQUIRE(bound <= cost.predicted_ps);
        REQUIRE(bound >= unit_bound_ps(listed, from, to, pairs_of_lists(listed, from, to)));
        grids += p->units.front().grid;
        // A price above what is of use may be told too low, but not as low as that; then only what
        // the exchange takes at least is known, until more is of use.
        p->levels->forget_listings();
        for (const int64_t percent : {50, 75, 90, 100}) {
          const int64_t most = static_cast<int64_t>(int128{cost.predicted_ps} * percent / 100);
          const ExchangeCost priced = price_between(*p, from, to, way, most);
          REQUIRE(priced.predicted_ps >= std::min(saturating_add(most, 1), cost.predicted_ps));
          REQUIRE(priced.predicted_ps <= cost.predicted_ps);
          REQUIRE((priced.at_least || priced.predicted_ps == cost.predicted_ps));
          told_at_least += priced.at_least && most > floor;
        }
      }
    }
    // The bound of the whole way, and of what the source grows to.
    for (int k = 0; k < 20; ++k) {
      PlanProblem one = *p;
      one.source = test::random_state(*p, 0, random);
      one.target = test::random_state(*p, 0, random);
      one.state_limit = INT64_MAX;
      const Found found = find_cheapest(one);
      REQUIRE(found.exists);
      REQUIRE(bound_between(one, one.source, one.target).ps <= found.cost.ps);
      SearchState part = one.source;
      for (int d = 0; d < one.dims; ++d) drop_last(part, one.dims, d, part.length(d) / 2);
      REQUIRE(bound_between(one, part, one.target, true).ps <= found.cost.ps);
    }
  }
  CHECK(floors > 1000);
  CHECK(by_all > 80);
  CHECK(by_all_pays > 50);
  MESSAGE(by_all << " by all, of which " << by_all_pays << " pay");
  CHECK(grids > 1000);
  CHECK(told_at_least > 300);
}

TEST_CASE("a price above what is of use is exact or told as the least that it may be") {
  int told = 0;
  for (const NeedQuestion& w : {NeedQuestion{{2, 4, 2, 2}, {64, 256}, 8}, NeedQuestion{{2, 4, 2, 2}, {2, 200}, 8},
                                NeedQuestion{{4, 2, 4}, {64, 64}, 4}, NeedQuestion{{2, 3, 4}, {48, 48}, 4}}) {
    test::SmallQuestion question(w.sizes, test::two_levels(w.inside, 500), {w.shape, DType::float16});
    const auto p = question.problem();
    REQUIRE(p);
    std::mt19937_64 random(11);
    for (int k = 0; k < 1000; ++k) {
      const Ends ends(*p, k, random);
      const SearchState& from = ends.from;
      const SearchState& to = ends.to;
      CAPTURE(to_text(to_state(*p, from), w.sizes));
      CAPTURE(to_text(to_state(*p, to), w.sizes));
      p->levels->forget_listings();
      const ExchangeCost exact = price_between(*p, from, to, ExchangeWay::one_phase);
      REQUIRE(!exact.at_least);
      for (const int64_t percent : {30, 60, 90, 99, 100}) {
        const int64_t most = exact.predicted_ps * percent / 100;
        const ExchangeCost cost = price_between(*p, from, to, ExchangeWay::one_phase, most);
        if (cost.at_least) {
          REQUIRE(cost.predicted_ps > most);
          REQUIRE(cost.predicted_ps <= exact.predicted_ps);
          ++told;
        } else {
          REQUIRE(cost.predicted_ps == exact.predicted_ps);
        }
      }
    }
  }
  CHECK(told > 1000);
}

TEST_CASE("uneven extents: no exchange takes less than its floor, no step less than the bound") {
  int by_all = 0;
  int floors = 0;
  int64_t tight = 0;
  int64_t closer = 0;
  Topology three_levels = test::two_levels(4, 300);
  three_levels.levels.back().ranks = 16;
  three_levels.levels.push_back({"far", 1'048'576, 12'500, 20'000, 100, 100});
  Topology fast_outside = test::two_levels(16, 0);
  fast_outside.levels.back().mb_per_s = fast_outside.levels.front().mb_per_s;
  const std::vector<std::pair<NeedQuestion, Topology>> worlds{
      std::pair{NeedQuestion{{4, 6}, {25, 7}, 0}, test::two_levels(6, 500)},
      std::pair{NeedQuestion{{12, 4}, {5, 16}, 0}, test::two_levels(8, 0)},
      std::pair{NeedQuestion{{16, 2}, {10}, 0}, uniform_topology()},
      std::pair{NeedQuestion{{3, 8, 2}, {20, 7, 3}, 0}, test::two_levels(4, 200)},
      std::pair{NeedQuestion{{6, 4, 2}, {2, 100, 9}, 0}, test::two_levels(8, 500)},
      std::pair{NeedQuestion{{4, 4, 4}, {7, 130}, 0}, three_levels},
      std::pair{NeedQuestion{{16, 4}, {3, 10}, 0}, fast_outside},
      std::pair{NeedQuestion{{3, 5}, {1, 4}, 0}, uniform_topology()},
      std::pair{NeedQuestion{{8, 5}, {2, 40}, 0}, test::two_levels(6, 300)},
      std::pair{NeedQuestion{{4, 4, 3}, {1, 9, 50}, 0}, test::two_levels(4, 700)},
      std::pair{NeedQuestion{{6, 2, 4}, {3, 2, 64}, 0}, test::two_levels(8, 100)},
      std::pair{NeedQuestion{{12, 8}, {100, 48}, 0}, test::two_levels(8, 200)},
      std::pair{NeedQuestion{{24, 2, 2}, {24, 200, 160}, 0}, test::two_levels(8, 400)},
  };
  // Each three times: where latencies decide, where bytes do, and by protocols, where peers do.
  for (size_t i = 0; i < 3 * worlds.size(); ++i) {
    const NeedQuestion& w = worlds[i / 3].first;
    Topology topology = worlds[i / 3].second;
    if (i % 3 == 2) {
      topology = test::with_protocols(topology);
      for (TopologyLevel& level : topology.levels) level.per_peer_ns = &level == &topology.levels.front() ? 3'400 : 14'000;
    }
    for (TopologyLevel& level : topology.levels) {
      if (i % 3 != 1) continue;
      level.mb_per_s = std::max<int64_t>(1, level.mb_per_s / 10'000);
      level.latency_ns = level.per_peer_ns = 1;
    }
    test::SmallQuestion question(w.sizes, topology, {w.shape, DType::bfloat16});
    question.request.reduce_dtype = DType::float32;
    const auto p = question.problem();
    REQUIRE(p);
    REQUIRE(!p->even);
    std::mt19937_64 random(11);
    for (int k = 0; k < 1'500; ++k) {
      const Ends ends(*p, k, random);
      const SearchState& from = ends.from;
      const SearchState& to = ends.to;
      CAPTURE(topology.levels.size());
      CAPTURE(to_text(to_state(*p, from), w.sizes));
      CAPTURE(to_text(to_state(*p, to), w.sizes));
      for (const ExchangeWay way : test::ways_between(*p, from, to)) {
        CAPTURE(static_cast<int>(way));
        const ExchangeCost cost = price_between(*p, from, to, way);
        REQUIRE(cost.exact);
        by_all += way == ExchangeWay::by_all;
        const int64_t floor = exchange_floor_ps(*p, from, to, way);
        REQUIRE(floor <= cost.predicted_ps);
        REQUIRE(few_peers_floor(*p, from, to).ps <= cost.predicted_ps);
        // Asked whether all may fetch where that decides.
        REQUIRE(few_peers_floor(*p, from, to, cost.predicted_ps).ps <= cost.predicted_ps);
        const int64_t close = close_exchange_floor_ps(*p, from, to, way);
        REQUIRE(close <= cost.predicted_ps);
        closer += close > floor;
        REQUIRE(bound_between(*p, from, to).ps <= cost.predicted_ps);
        floors += floor > 0;
        tight += floor > cost.predicted_ps / 4 * 3;
      }
      // What `from` grows to holds no more than its part.
      SearchState part = from;
      for (int d = 0; d < p->dims; ++d) drop_last(part, p->dims, d, part.length(d) / 2);
      REQUIRE(bound_between(*p, part, to, true).ps <= price_between(*p, from, to, ExchangeWay::one_phase).predicted_ps);
    }
    for (int k = 0; k < 12; ++k) {
      PlanProblem one = *p;
      one.source = test::random_state(*p, k % 2 == 0 ? 0 : random() & 1, random);
      one.target = test::random_state(*p, 0, random);
      one.source_pending = one.source.pending;
      one.state_limit = INT64_MAX;
      const Found found = find_cheapest(one);
      REQUIRE(found.exists);
      REQUIRE(bound_between(one, one.source, one.target).ps <= found.cost.ps);
    }
  }
  CHECK(floors > 7'500);
  CHECK(by_all > 2'000);
  MESSAGE(by_all << " by all");
  CHECK(tight > floors / 2);
  MESSAGE(closer << " of " << floors << " closer");
  CHECK(closer > floors / 20);
}

TEST_CASE("the unit with the fewest ranks needs the most: the bound of a gather by hand") {
  // Units of 6 on 16 ranks: the last has 4 of them. S(0)RR -> RRR of 64 x 48 over the first mesh
  // dim: ranks 12 to 15 hold the second half, and half of the tensor enters over their 4 links.
  test::SmallQuestion question({2, 4, 2}, test::two_levels(6, 500), {{64, 48}, DType::bfloat16});
  question.options = {};
  question.request.reduce_dtype = DType::float32;
  question.request.dst.shards.back().clear();
  const auto p = question.problem();
  REQUIRE(p);
  const UnitRanks& unit = p->units.front();
  CHECK(unit.members() == 4);
  const UnitNeed& need = unit_need(*p, unit, p->source, p->target);
  CHECK(need.least == 64 * 48 / 2);
  CHECK(need.one_phase == 4 * 64 * 48 / 2);
  CHECK(need.missing == 4 * 64 * 48 / 2);
}
