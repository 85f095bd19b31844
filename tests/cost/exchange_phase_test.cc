// Two phases in chunks: the best number of them, against trying all.
#include "cost/exchange_phase.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/int_math.h"
#include "random_prices.h"

namespace meshplan {
namespace {

using test::Random;

Traffic random_traffic(const Topology& topology, Random& random) {
  Traffic traffic;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    if (random.one_in(3)) continue;
    traffic.bytes[l] = random.below(int64_t{1} << (12 + random.below(25)));
    traffic.peers[l] = 1 + random.below(8);
  }
  traffic.denominator = 1 + random.below(4);
  return traffic;
}

// Of several the least of more than one convex function counts.
int64_t protocols_of_exchanges(const Topology& topology) {
  return std::count_if(topology.protocols.begin(), topology.protocols.end(), [](const Protocol& p) { return serves(p, Op::exchange); });
}

}  // namespace

TEST_CASE("no other number of chunks takes less, but for what each is rounded up") {
  Random random(20261130);
  int64_t several = 0;
  int64_t compared = 0;
  for (int round = 0; round < 1'500; ++round) {
    const Topology topology = test::random_prices(random);
    if (protocols_of_exchanges(topology) > 1) continue;
    ExchangeTraffic traffic;
    for (Traffic& phase : traffic.phase) phase = random_traffic(topology, random);
    const int64_t stages = random.one_in(2) ? 1 : 1 + random.below(12);
    const InChunks best = best_in_chunks(topology, traffic, stages);
    REQUIRE(best.chunks % stages == 0);
    REQUIRE(best.ps == in_chunks_ps(topology, traffic, best.chunks));
    for (int64_t chunks = std::max<int64_t>(2, stages); chunks <= most_chunks; ++chunks) {
      if (chunks % stages == 0) REQUIRE(best.ps <= in_chunks_ps(topology, traffic, chunks) + chunks);
    }
    several += best.chunks > 2 * stages;
    ++compared;
  }
  CHECK(several * 10 > compared);
}

TEST_CASE("more chunks than 1,024, or fewer than stages, are none") {
  Topology topology = *topology_preset("h100");
  CHECK(best_in_chunks(topology, {}, most_chunks).chunks == most_chunks);
  CHECK(best_in_chunks(topology, {}, most_chunks + 1).ps == INT64_MAX);
}

// 200 MB from one peer: 64 MiB of a chunk are held to 82 GB/s, all of it to 362.
TEST_CASE("where few bytes of a whole are held to the rate of a peer, chunks of fewer are") {
  const Topology topology = *topology_preset("h100");
  ExchangeTraffic traffic;
  traffic.phase[0].bytes[0] = 200'000'000;
  traffic.phase[0].peers[0] = 1;
  const auto of_chunks = [&](int64_t chunks) { return in_chunks_ps(topology, traffic, chunks) / 1'000'000'000; };
  CHECK(of_chunks(1) == 0);
  CHECK(of_chunks(2) == 1);
  CHECK(of_chunks(3) == 2);
  CHECK(of_chunks(4) == 2);
  CHECK(best_in_chunks(topology, traffic, 1).chunks == 2);
}

}  // namespace meshplan
