// Random topologies of one to three levels, of any number of ranks in a unit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "verify/random_world.h"

namespace meshplan::test {

// Rates of up to `most_mb_per_s`, of copies up to two and a half times that.
inline Topology random_levels(Random& random, int64_t most_mb_per_s) {
  static const std::vector<int64_t> units{1, 2, 2, 3, 4, 4, 6, 8};
  Topology topology;
  int64_t ranks = random.pick(units);
  const int64_t levels = 1 + random.below(3);
  for (int64_t l = 0; l < levels; ++l) {
    TopologyLevel level;
    level.name = "l" + std::to_string(l);
    level.ranks = l + 1 == levels ? 1'048'576 : ranks;
    ranks *= random.one_in(4) ? 1 : random.pick(units);
    level.mb_per_s = 1 + random.below(most_mb_per_s);
    level.latency_ns = random.below(30'000);
    level.per_peer_ns = random.below(600);
    level.exchange_percent = random.one_in(3) ? 1 + random.below(100) : 100;
    topology.levels.push_back(level);
  }
  if (random.one_in(3)) topology.copy_mb_per_s = 1 + random.below(most_mb_per_s * 5 / 2);
  return topology;
}

}  // namespace meshplan::test
