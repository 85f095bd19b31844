#include "transfer/level_units.h"

namespace meshplan {

std::vector<int64_t> level_ranks_of(const Topology& topology) {
  std::vector<int64_t> ranks;
  for (const TopologyLevel& level : topology.levels) ranks.push_back(level.ranks);
  if (ranks.empty()) ranks.push_back(0);
  ranks.back() = INT64_MAX;
  return ranks;
}

}  // namespace meshplan
