// Exchanges beside collectives in one wave: what they share of a level comes behind, all else at the
// same time.
#include "cost/round_time.h"

#include <doctest/doctest.h>

namespace meshplan {
namespace {

// Hosts of 2 ranks; inside 1 GB/s, across 1 GB/s; no latencies.
Topology hosts_of_two() {
  Topology topology;
  topology.levels = {{"inside", 2, 1000, 0, 0}, {"across", 4, 1000, 0, 0}};
  return topology;
}

}  // namespace

TEST_CASE("exchanges run beside collectives that use none of their levels") {
  RankTable ranks;
  ranks.global_ids = {0, 1, 2, 3};
  const Topology topology = hosts_of_two();
  RoundCounter counter(ranks, topology);
  counter.add({{0, 1, 3000}}, 1, 1);  // inside: 3 us
  const RoundLoad inside = counter.take();
  const auto beside = [&](LevelSet levels, const std::vector<int32_t>& on) {
    WaveCollectives collectives;
    collectives.add(5'000'000, on, levels, 4);
    return wave_ps(topology, inside, collectives);
  };
  // Groups 0 2 and 1 3 meet across alone, 0 1 inside, 0 1 2 3 on both.
  CHECK(beside(0b10, {0, 1, 2, 3}) == 5'000'000);
  CHECK(beside(0b01, {0, 1, 2, 3}) == 8'000'000);
  CHECK(beside(0b11, {0, 1, 2, 3}) == 8'000'000);
  // Ranks that do not gather exchange meanwhile.
  CHECK(beside(0b11, {2, 3}) == 5'000'000);
}

}  // namespace meshplan
