#include "transfer/rank_table.h"

#include <algorithm>

#include "base/check.h"

namespace meshplan {

const std::vector<int32_t>& RankTable::of_positions(const Universe& universe) const {
  const auto found = std::find_if(universes.begin(), universes.end(), [&](const Positions& known) {
    return known.universe.get() == &universe;
  });
  MESHPLAN_CHECK(found != universes.end(), "a mesh is in a universe that the plan lacks");
  return found->of_position;
}

RankTable make_rank_table(const MeshTable& meshes) {
  RankTable table;
  for (const auto& [rank, position] : positions_by_rank(joined_universe(meshes)))
    table.global_ids.push_back(rank);
  for (const auto& universe : universes_of(meshes)) {
    std::vector<int32_t> of_position(static_cast<size_t>(universe->world));
    size_t at = 0;
    for (const auto& [rank, position] : positions_by_rank(*universe)) {
      while (table.global_ids[at] != rank) ++at;
      of_position[static_cast<size_t>(position)] = static_cast<int32_t>(at);
    }
    table.universes.push_back({universe, std::move(of_position)});
  }
  return table;
}

Result<RankTable> rank_table_within(const MeshTable& meshes, int64_t there) {
  const int64_t ranks = rank_count(meshes);
  if (there >= ranks) return make_rank_table(meshes);
  return environment("the plan needs " + std::to_string(ranks) + " ranks and there are " +
                     std::to_string(there) + "; start as many processes");
}

}  // namespace meshplan
