// Chunks in shifts: what is found takes least of all, and no less than is said to be least.
#include "cost/shift_price.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "cost/exchange.h"
#include "small_mesh.h"
#include "verify/random_world.h"

using namespace meshplan;

namespace {

// Over two or three levels, with little latency and much time for each peer.
Topology links_of(test::Random& random) {
  Topology t = test::two_levels(2 + random.below(7), 0);
  if (random.one_in(3)) {
    t.levels[1].ranks = t.levels[0].ranks * (2 + random.below(2));
    t.levels.push_back(t.levels[1]);
    t.levels[2].ranks = 1'048'576;
    t.levels[2].mb_per_s /= 1 + random.below(3);
  }
  for (size_t l = 0; l < t.levels.size(); ++l) {
    t.levels[l].latency_ns = 1 + random.below(100);
    t.levels[l].per_peer_ns = l == 0 ? random.below(20) : random.below(2'000);
    if (random.one_in(3)) t.levels[l].peer_mb_per_s = t.levels[l].mb_per_s / (1 + random.below(3));
  }
  if (random.one_in(4)) t.copy_mb_per_s = 1'000'000;
  return t;
}

Mesh mesh_on(test::Random& random, int64_t a, int64_t b) {
  std::vector<int64_t> ids;
  const int64_t first = random.below(20);
  for (int64_t id = 0; id < a * b; ++id) ids.push_back(first + id);
  if (random.one_in(3)) random.shuffle(ids);
  return test::mesh_of({a, b}, ids);
}

}  // namespace

TEST_CASE("of shifts those are found that take least, and take at least what is said before") {
  constexpr uint64_t seed = 71;
  CAPTURE(seed);
  test::Random random(seed);
  int64_t helped = 0;
  int64_t told_soon = 0;
  for (int64_t round = 0; round < 300; ++round) {
    CAPTURE(round);
    const Mesh from = mesh_on(random, 1 + random.below(6), 1 + random.below(6));
    const Mesh to = mesh_on(random, 1 + random.below(4), 1 + random.below(8));
    const Topology topology = links_of(random);
    const std::vector<int64_t> shape{1 + random.below(5'000), 1 + random.below(900)};
    State src = test::random_state(random, mesh_shape(from), 2, 0, 2);
    State dst = test::random_state(random, mesh_shape(to), 2, 0, 2);
    src.partial.clear();
    dst.partial.clear();
    const LevelMap levels(from, topology);
    ExchangeQuestion q;
    q.levels = &levels;
    q.dst_mesh = &to;
    q.shape = shape;
    q.element_bytes = 4;
    q.src = &src;
    q.dst = &dst;
    q.phases = 2;
    if (random.one_in(3)) q.fetchers = Fetchers::all;
    const ExchangeCost all = price_exchange(q);
    REQUIRE(all.exact);
    ExchangeQuestion may = q;
    may.in_shifts_too = true;
    const ExchangeCost found = price_exchange(may);
    const int64_t floor_ps = least_in_shifts_ps(topology, all.traffic);
    CHECK(std::min(floor_ps, all.predicted_ps) <= found.predicted_ps);
    if (found.at_once > 0) CHECK(floor_ps <= found.predicted_ps);
    CHECK(found.predicted_ps <= all.predicted_ps);
    CHECK(found.wire_bytes == all.wire_bytes);
    int64_t least_ps = all.predicted_ps;
    for (int64_t at_once = 1; at_once <= most_at_once_tried; ++at_once) {
      q.at_once = at_once;
      for (int64_t chunks = 2; chunks <= 100; ++chunks) {
        q.chunks = chunks;
        const ExchangeCost cost = price_exchange(q);
        if (!cost.exact) continue;  // no multiple of the stages
        CHECK(cost.at_once == at_once);
        CHECK(cost.chunks == chunks);
        CHECK(floor_ps <= cost.predicted_ps);
        least_ps = std::min(least_ps, cost.predicted_ps);
      }
    }
    if (found.chunks <= 100) CHECK(found.predicted_ps == least_ps);
    if (found.chunks > 100) CHECK(found.predicted_ps <= least_ps);
    helped += found.at_once > 0;
    // Whoever fetches.
    ExchangeQuestion either = may;
    either.fetchers = std::nullopt;
    if (may.fetchers == Fetchers::wanting) CHECK(price_exchange(either).predicted_ps <= found.predicted_ps);
    // A price above a limit may be told too low, but not as low as that.
    may.most_ps = random.below(found.predicted_ps + found.predicted_ps / 4 + 2);
    const ExchangeCost limited = price_exchange(may);
    if (found.predicted_ps <= may.most_ps) CHECK(limited.predicted_ps == found.predicted_ps);
    if (found.predicted_ps > may.most_ps) CHECK(limited.predicted_ps > may.most_ps);
    CHECK(limited.predicted_ps <= found.predicted_ps * (limited.at_least ? 1 : 2));
    told_soon += limited.at_least;
  }
  MESSAGE(helped << " take less in shifts, " << told_soon << " told soon");
  CHECK(helped > 20);
  CHECK(told_soon > 20);
}
