// What bytes to several peers take at least, against the price of traffic that has as many or more.
#include <doctest/doctest.h>

#include <random>

#include "cost/collective_time.h"

using namespace meshplan;

TEST_CASE("more bytes and more peers never take less than what is said of the least of them") {
  std::mt19937_64 random(5);
  const auto of = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  int tight = 0;
  for (int k = 0; k < 20'000; ++k) {
    TopologyLevel level{"level", 1'048'576, 1 + of(50'000), of(3'000), of(2) * of(14'000), 50 + of(51)};
    if (k % 4 != 0) level.peer_mb_per_s = 1 + of(k % 3 == 0 ? 20 : 30'000);
    if (k % 2 == 0) level.peer_bytes = of(100'000);
    Topology topology;
    topology.levels = {level};
    const int64_t bytes = of(10'000'000);
    const int64_t denominator = 1 + of(8);
    const int64_t peers = of(12);
    const int64_t least = least_transfer_ps(level, bytes, denominator, peers);
    const int64_t start = (level.latency_ns + level.per_peer_ns * peers) * 1'000;
    int64_t cheapest = INT64_MAX;
    for (int more = 0; more < 40; ++more) {
      Traffic traffic;
      traffic.denominator = denominator;
      traffic.bytes[0] = bytes + (more % 3 == 0 ? 0 : of(1'000'000));
      traffic.peers[0] = std::max<int64_t>(1, peers + more / 3);
      if (traffic.bytes[0] == 0) continue;
      const int64_t ps = traffic_ps(topology, traffic, Peers::number_and_rate, 0);
      CAPTURE(bytes);
      CAPTURE(peers);
      CAPTURE(traffic.peers[0]);
      REQUIRE(start + least <= ps);
      cheapest = std::min(cheapest, ps);
    }
    tight += bytes > 0 && start + least > cheapest / 100 * 98;
  }
  CHECK(tight > 12'000);
}
