// What an exchange is said to take at least, where its price is of no use above some limit.
#include "cost/exchange.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "../verify/random_world.h"
#include "some_protocols.h"

namespace meshplan {
namespace {

// Units that may cut the mesh unevenly, latencies that may not grow outwards.
Topology random_levels(test::Random& random) {
  Topology topology;
  int64_t unit = 1;
  for (int64_t level = random.below(3); level > 0; --level) {
    unit *= random.pick(std::vector<int64_t>{2, 3, 4, 6, 8});
    topology.levels.push_back({"in", unit, 1 + random.below(400'000), random.below(20'000), random.below(2) * 500, 50 + random.below(51)});
  }
  topology.levels.push_back(
      {"out", 1'048'576, 1 + random.below(50'000), random.below(40'000), random.below(2) * 500, 50 + random.below(51)});
  if (!random.one_in(4)) {
    std::sort(topology.levels.begin(), topology.levels.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
    for (size_t l = 1; l < topology.levels.size(); ++l) topology.levels[l].latency_ns += topology.levels[l - 1].latency_ns;
  }
  if (random.one_in(3)) topology.copy_mb_per_s = 1 + random.below(400'000);
  return random.one_in(2) ? test::with_random_protocols(random, topology) : topology;
}

// A limit about as large as the price.
int64_t random_limit(test::Random& random, int64_t ps) {
  switch (random.below(4)) {
    case 0:
      return ps;
    case 1:
      return std::max<int64_t>(0, ps - 1);
    case 2:
      return ps * random.below(100) / 100;
    default:
      return ps + ps * random.below(100) / 100;
  }
}

struct Seen {
  int64_t prices = 0;
  int64_t at_least = 0;
};

// Whoever asks with a limit gets the price where it is not above, else no more than the price.
void check_limited(const ExchangeCost& limited, const ExchangeCost& full, int64_t most_ps, Seen& seen) {
  CAPTURE(most_ps);
  CAPTURE(full.predicted_ps);
  if (!limited.at_least) {
    REQUIRE((full.predicted_ps > most_ps || limited.predicted_ps == full.predicted_ps));
    ++seen.prices;
    return;
  }
  REQUIRE(limited.predicted_ps > most_ps);
  REQUIRE(limited.predicted_ps <= full.predicted_ps);
  ++seen.at_least;
}

}  // namespace

TEST_CASE("a price that is of no use above a limit is never told too high") {
  test::Random random(23);
  test::WorldOptions worlds{{1, 2, 2, 3, 4, 5, 6, 8, 12}, 4, 64, true};
  Seen listed;
  Seen digits;
  for (int64_t tried = 0; tried < 20'000; ++tried) {
    const MeshTable table = test::random_table(random, worlds);
    const Mesh& mesh = table.meshes.front();
    const Topology topology = random_levels(random);
    const LevelMap levels(mesh, topology);
    Request request = test::random_request(random, table, 2);
    for (int64_t& extent : request.tensor.shape) extent *= 1 + random.below(40);
    if (random.one_in(2)) request.dst.partial = request.src.partial = {};
    if (!request.dst.partial.empty()) continue;
    CAPTURE(tried);
    ExchangeQuestion q;
    q.levels = &levels;
    q.shape = request.tensor.shape;
    q.element_bytes = 2;
    q.src = &request.src;
    q.dst = &request.dst;
    q.phases = request.src.partial.empty() && random.one_in(2) ? 2 : 1;
    const ExchangeCost full = price_exchange(q);
    REQUIRE(full.exact);
    for (int again = 0; again < 3; ++again) {
      const LevelMap afresh(mesh, topology);  // remembers no listing
      ExchangeQuestion limited = q;
      limited.levels = &afresh;
      limited.most_ps = random_limit(random, full.predicted_ps);
      check_limited(price_exchange(limited), full, limited.most_ps, listed);
    }
    if (!levels.regular()) continue;
    const auto problem = align_digits(levels, q.shape, q.element_bytes, request.src, request.dst);
    if (!problem) continue;
    TurnTable turns;
    DigitQuestion bare{&levels, &problem->world, &problem->change, q.phases, std::nullopt, &turns};
    bare.most_ps = random_limit(random, full.predicted_ps);
    if (const auto cost = price_digits(bare)) check_limited(*cost, full, bare.most_ps, digits);
  }
  CHECK(listed.prices > 1000);
  CHECK(listed.at_least > 100);
  CHECK(digits.prices > 100);
  CHECK(digits.at_least > 10);
}

}  // namespace meshplan
