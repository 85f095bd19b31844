// Random topologies of every kind that prices are told by: levels alone, protocols, presets.
#pragma once

#include "cost/topology.h"
#include "some_protocols.h"
#include "verify/random_levels.h"

namespace meshplan::test {

// Of a preset units may be cut, so that few ranks lie in several of them.
inline Topology random_prices(Random& random) {
  Topology topology = random_levels(random, 400'000);
  const int64_t kind = random.below(6);
  if (kind == 0) return with_protocols(topology);
  if (kind == 1) return with_random_protocols(random, topology);
  if (kind == 2) {
    topology = *topology_preset(random.pick(topology_preset_names()));
    if (topology.levels.size() > 1) topology.levels[0].ranks = 2 + random.below(8);
  }
  return topology;
}

}  // namespace meshplan::test
