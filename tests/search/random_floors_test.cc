// Floors and limited prices against prices, over worlds of every kind: ranks anywhere and in any order,
// levels that cut the mesh unevenly, extents that nothing divides, latencies, peers or bytes that decide.
#include <algorithm>
#include <memory>
#include <random>

#include "../cost/some_protocols.h"
#include "doctest/doctest.h"
#include "search/exchange_floor.h"
#include "search/moves.h"
#include "small_question.h"
#include "verify/random_world.h"

using namespace meshplan;

namespace {

constexpr int64_t most_ranks = 200;
using Numbers = std::vector<int64_t>;

Numbers random_sizes(test::Random& random) {
  Numbers sizes;
  int64_t ranks = 1;
  for (int64_t left = 1 + random.below(3); left > 0; --left) {
    const int64_t size = random.pick(Numbers{2, 3, 4, 5, 6, 7, 8, 12, 16, 24});
    if (ranks * size > most_ranks) break;
    sizes.push_back(size);
    ranks *= size;
  }
  return sizes;
}

Numbers random_shape(test::Random& random) {
  Numbers shape;
  for (int64_t left = 1 + random.below(3); left > 0; --left)
    shape.push_back(random.pick(Numbers{1, 2, 3, 4, 5, 7, 8, 10, 16, 24, 31, 48, 65, 100, 130, 256, 300}));
  return shape;
}

Topology random_links(test::Random& random) {
  const int64_t unit = random.pick(Numbers{2, 3, 4, 5, 6, 8, 8, 8, 12, 16});
  Topology topology = test::two_levels(unit, random.pick(Numbers{0, 100, 500, 3'000, 14'000}));
  if (random.one_in(3)) {
    TopologyLevel far{"far", 1'048'576, random.pick(Numbers{2'500, 12'500, 40'000}), random.pick(Numbers{5'000, 20'000}), 0, 100};
    far.per_peer_ns = random.pick(Numbers{0, 100, 9'000});
    topology.levels.back().ranks = unit * random.pick(Numbers{2, 3, 4});
    topology.levels.push_back(far);
  }
  if (random.one_in(2)) topology = test::with_protocols(topology);
  const bool bytes_decide = random.one_in(3);
  const bool peers_decide = random.one_in(3);
  for (TopologyLevel& level : topology.levels) {
    if (bytes_decide) level.mb_per_s = std::max<int64_t>(1, level.mb_per_s / 10'000);
    if (peers_decide) level.per_peer_ns = random.pick(Numbers{1, 3'400, 14'000});
  }
  return topology;
}

// Global ids; empty: 0, 1, 2, ...
Numbers random_ids(test::Random& random, int64_t ranks) {
  Numbers ids;
  if (!random.one_in(3)) return ids;
  const int64_t first = random.below(9);
  const int64_t apart = random.pick(Numbers{1, 1, 2, 3});
  for (int64_t i = 0; i < ranks; ++i) ids.push_back(first + i * apart);
  if (random.one_in(2)) random.shuffle(ids);
  return ids;
}

std::unique_ptr<test::SmallQuestion> random_question(test::Random& random) {
  const Numbers sizes = random_sizes(random);
  const Numbers shape = random_shape(random);
  const Topology topology = random_links(random);
  const Numbers ids = random_ids(random, mesh_size(test::mesh_of(sizes)));
  auto question = std::make_unique<test::SmallQuestion>(sizes, topology, TensorMeta{shape, DType::bfloat16}, ids);
  question->request.reduce_dtype = DType::float32;
  return question;
}

// A price with a limit is exact where it is not above, else exact or the least that it may be; asked
// again with higher limits, it goes on from what was listed before.
int64_t check_limits(const PlanProblem& p, const SearchState& from, const SearchState& to, ExchangeWay way, int64_t exact_ps,
                     test::Random& random) {
  p.levels->forget_listings();
  int64_t told = 0;
  int64_t most = exact_ps / 100 * (50 + random.below(60));
  for (int again = 0; again < 3; ++again) {
    CAPTURE(most);
    const ExchangeCost cost = price_between(p, from, to, way, most);
    if (cost.at_least) {
      REQUIRE(cost.predicted_ps > most);
      REQUIRE(cost.predicted_ps <= exact_ps);
    } else if (exact_ps <= most) {
      REQUIRE(cost.predicted_ps == exact_ps);
    }
    told += cost.at_least ? 1 : 0;
    most += (exact_ps - most) / 2 + 1;
  }
  return told;
}

// Floors of all ways at once and of one by one say the same of the way that takes least; by boxes alone it
// is no more.
void check_least_of_ways(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  const WayFloors all = exchange_floors_ps(p, from, to);
  int64_t least = INT64_MAX;
  for (const ExchangeWay way : exchange_ways) {
    if (!may_go(p, from, to, way)) continue;
    const int64_t one = exchange_floor_ps(p, from, to, way);
    REQUIRE(all[static_cast<size_t>(way)] <= one);
    least = std::min(least, one);
  }
  REQUIRE(*std::min_element(all.begin(), all.end()) == least);
  const int64_t by_boxes = boxes_floor(p, from, to).ps;
  REQUIRE(by_boxes <= least);
  // Where more than `enough` is told it may be less, but not as little as that.
  for (const int64_t enough : {by_boxes - 1, by_boxes / 8 * 7, by_boxes / 2}) {
    const int64_t told = boxes_floor(p, from, to, enough).ps;
    REQUIRE(told <= least);
    if (by_boxes > enough) REQUIRE(told > enough);
  }
}

}  // namespace

TEST_CASE("random worlds: no exchange takes less than its floors, nor than a price with a limit says") {
  constexpr uint64_t worlds = 300;
  int64_t prices = 0;
  int64_t by_all = 0;
  int64_t told = 0;
  for (uint64_t seed = 0; seed < worlds; ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    std::mt19937_64 states(seed);
    const auto question = random_question(random);
    const auto p = question->problem();
    if (!p) continue;
    for (int k = 0; k < 120; ++k) {
      const auto pending = static_cast<uint16_t>(k % 3 == 0 ? states() & p->all : 0);
      const auto left = static_cast<uint16_t>(k % 6 == 0 ? pending & states() : pending);
      const SearchState from = test::random_state(*p, pending, states);
      const SearchState to = test::random_state(*p, left, states);
      if (from == to) continue;
      CAPTURE(to_text(to_state(*p, from), p->mesh_sizes));
      CAPTURE(to_text(to_state(*p, to), p->mesh_sizes));
      check_least_of_ways(*p, from, to);
      for (const ExchangeWay way : test::ways_between(*p, from, to)) {
        CAPTURE(static_cast<int>(way));
        const ExchangeCost cost = price_between(*p, from, to, way);
        REQUIRE(cost.exact);
        REQUIRE(exchange_floor_ps(*p, from, to, way) <= cost.predicted_ps);
        REQUIRE(close_exchange_floor_ps(*p, from, to, way) <= cost.predicted_ps);
        REQUIRE(few_peers_floor(*p, from, to).ps <= cost.predicted_ps);
        // Asked whether all may fetch where that decides.
        REQUIRE(boxes_floor(*p, from, to, cost.predicted_ps).ps <= cost.predicted_ps);
        REQUIRE(bound_between(*p, from, to).ps <= cost.predicted_ps);
        told += check_limits(*p, from, to, way, cost.predicted_ps, random);
        ++prices;
        by_all += way == ExchangeWay::by_all ? 1 : 0;
      }
    }
  }
  CHECK(prices > 40'000);
  CHECK(by_all > 10'000);
  CHECK(told > 10'000);
}

namespace {

// A state from which one slice leads to `s`; the same where there is none.
SearchState holding_more(const PlanProblem& p, const SearchState& s, test::Random& random) {
  SearchState more = s;
  const auto d = static_cast<int>(random.below(p.dims));
  if (s.length(d) > 0) drop_last(more, p.dims, d, 1);
  return slices_lead_to(p, more, s) ? more : s;
}

// A state to which one slice leads from `s`.
SearchState wanting_less(const PlanProblem& p, const SearchState& s, test::Random& random) {
  std::vector<Edge> moves;
  (void)collective_moves(p, s, moves);
  std::erase_if(moves, [](const Edge& edge) { return edge.op != Op::slice; });
  return moves.empty() ? s : random.pick(moves).to;
}

// What is told of an exchange from a state that holds more, to one that wants less, where that says so.
int64_t check_told(const PlanProblem& p, const SearchState& from, const SearchState& to, int64_t least_ps, test::Random& random) {
  int64_t told = 0;
  SearchState held = from;
  SearchState wanted = to;
  for (int k = 0; k < 4; ++k) {
    if (random.one_in(2)) {
      held = holding_more(p, held, random);
    } else {
      wanted = wanting_less(p, wanted, random);
    }
    if (held == wanted || (held == from && wanted == to)) continue;
    CAPTURE(to_text(to_state(p, held), p.mesh_sizes));
    CAPTURE(to_text(to_state(p, wanted), p.mesh_sizes));
    const auto is_told = [&](const AnyWayFloor& floor) {
      return (held == from || floor.of_less_held) && (wanted == to || floor.of_more_wanted);
    };
    for (const int64_t enough : {least_ps, least_ps - 1, least_ps / 2, INT64_MAX}) {
      const AnyWayFloor peers = few_peers_floor(p, held, wanted, enough);
      const AnyWayFloor boxes = boxes_floor(p, held, wanted, enough);
      if (is_told(peers)) REQUIRE(peers.ps <= least_ps);
      if (is_told(boxes)) REQUIRE(boxes.ps <= least_ps);
      told += is_told(boxes) && boxes.ps > 0 ? 1 : 0;
    }
    REQUIRE(larger_box_ps(p, held, wanted, box_elements(p, held), box_elements(p, wanted)) <= least_ps);
  }
  return told;
}

}  // namespace

TEST_CASE("random worlds: who holds more and wants less takes no more, by boxes and peers") {
  constexpr uint64_t worlds = 300;
  int64_t told = 0;
  for (uint64_t seed = 0; seed < worlds; ++seed) {
    CAPTURE(seed);
    test::Random random(seed + 7'000);
    std::mt19937_64 states(seed);
    const auto question = random_question(random);
    auto p = question->problem();
    if (!p) continue;
    // As of many ranks.
    if (random.one_in(2)) p->all_may_fetch = false;
    for (int k = 0; k < 60; ++k) {
      const auto pending = static_cast<uint16_t>(k % 3 == 0 ? states() & p->all : 0);
      const auto left = static_cast<uint16_t>(k % 6 == 0 ? pending & states() : pending);
      const SearchState from = test::random_state(*p, pending, states);
      const SearchState to = test::random_state(*p, left, states);
      if (from == to) continue;
      CAPTURE(to_text(to_state(*p, from), p->mesh_sizes));
      CAPTURE(to_text(to_state(*p, to), p->mesh_sizes));
      int64_t least = INT64_MAX;
      for (const ExchangeWay way : test::ways_between(*p, from, to)) least = std::min(least, price_between(*p, from, to, way).predicted_ps);
      told += check_told(*p, from, to, least, random);
    }
  }
  CHECK(told > 10'000);
}
