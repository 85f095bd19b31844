// Peers that are counted once for many pairs of states.
#include "search/exchange_peers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "../cost/some_protocols.h"
#include "cost/topology.h"
#include "search/exchange_floor.h"
#include "small_question.h"

using namespace meshplan;

namespace {

struct PeerWorld {
  std::vector<int64_t> sizes;
  std::vector<int64_t> shape;
  int64_t inside;
};

}  // namespace

TEST_CASE("peers that were counted for other states alike are those that would be counted anew") {
  const std::vector<PeerWorld> worlds{{{12, 4, 2}, {16, 50257}, 8}, {{96, 2}, {16, 48, 12}, 8},       {{3, 4, 2}, {10, 9}, 8},
                                      {{2, 8, 6}, {128256, 7}, 8},  {{4, 2, 2, 3}, {4, 1000, 6}, 16}, {{2, 3, 8}, {7, 20}, 4}};
  size_t asked = 0;
  size_t counted = 0;
  for (const PeerWorld& w : worlds) {
    test::SmallQuestion question(w.sizes, test::with_protocols(test::two_levels(w.inside, 500)), {w.shape, DType::bfloat16});
    question.request.reduce_dtype = DType::float32;
    const auto p = question.problem();
    REQUIRE(p);
    std::mt19937_64 random(5);
    for (int k = 0; k < 1'500; ++k) {
      const auto pending = static_cast<uint16_t>(k % 3 == 0 ? random() & p->all : 0);
      const SearchState from = test::random_state(*p, pending, random);
      const SearchState to = test::random_state(*p, static_cast<uint16_t>(pending & random()), random);
      CAPTURE(to_text(to_state(*p, from), w.sizes));
      CAPTURE(to_text(to_state(*p, to), w.sizes));
      if (from == to) continue;
      const ExchangePeers peers = exchange_peers(*p, from, to);
      const int64_t shards = shards_met(*p, from, to);
      p->known_peers.from = p->known_peers.to = {};
      const int64_t few_ps = few_peers_floor(*p, from, to).ps;
      PlanProblem fresh = *p;
      fresh.known_peers = {};
      REQUIRE(exchange_peers(fresh, from, to) == peers);
      REQUIRE(shards_met(fresh, from, to) == shards);
      fresh.known_peers = {};
      const RankSides::Lists before = fresh.sides.lists(fresh, from);
      const RankSides::Lists after = fresh.sides.lists(fresh, to);
      REQUIRE(few_peers_floor(fresh, from, to, before, after, INT64_MAX).ps == few_ps);
      ++asked;
    }
    const auto& places = p->known_peers.of_met;
    counted += std::count_if(places.begin(), places.end(), [](const auto& place) { return place.met.shards > 0; });
  }
  // Of random pairs fewer are alike than of those that a search asks for.
  MESSAGE(counted << " counted of " << asked);
  CHECK(counted < asked / 10 * 9);
}
