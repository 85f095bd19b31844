#include "transfer/rank_table.h"

#include <algorithm>
#include <numeric>

namespace meshplan {

RankTable make_rank_table(const Universe& universe) {
  RankTable table;
  const auto world = static_cast<size_t>(universe.world);
  std::vector<int64_t> positions(world);
  std::iota(positions.begin(), positions.end(), 0);
  std::sort(positions.begin(), positions.end(),
            [&](int64_t a, int64_t b) { return rank_at(universe, a) < rank_at(universe, b); });
  table.of_position.resize(world);
  for (size_t r = 0; r < world; ++r) {
    table.global_ids.push_back(rank_at(universe, positions[r]));
    table.of_position[static_cast<size_t>(positions[r])] = static_cast<int32_t>(r);
  }
  return table;
}

Result<RankTable> rank_table_within(const Universe& universe, int64_t there) {
  if (there >= universe.world) return make_rank_table(universe);
  return environment("the plan needs " + std::to_string(universe.world) + " ranks and there are " +
                     std::to_string(there) + "; start as many processes");
}

}  // namespace meshplan
