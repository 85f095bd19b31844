// The universes of a table, and the ranks of all of them.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "mesh/mesh_table.h"

namespace meshplan {

bool Flatten::operator==(const Flatten& other) const {
  const bool alike =
      universe == other.universe ||
      (universe != nullptr && other.universe != nullptr && *universe == *other.universe);
  return alike && name == other.name && dims == other.dims && of == other.of &&
         layout == other.layout && group_options == other.group_options;
}

std::vector<std::shared_ptr<const Universe>> universes_of(const MeshTable& table) {
  std::vector<std::shared_ptr<const Universe>> universes;
  std::unordered_set<const Universe*> known;
  for (const Mesh& mesh : table.meshes) {
    if (known.insert(mesh.universe.get()).second) universes.push_back(mesh.universe);
  }
  return universes;
}

bool has_several_universes(const MeshTable& table) {
  return std::any_of(table.meshes.begin(), table.meshes.end(), [&](const Mesh& mesh) {
    return mesh.universe != table.meshes.front().universe;
  });
}

const Mesh& root_of(const MeshTable& table, const Mesh& mesh) {
  const auto root = std::find_if(table.meshes.begin(), table.meshes.end(), [&](const Mesh& known) {
    return known.universe == mesh.universe;
  });
  MESHPLAN_CHECK(root != table.meshes.end(), "mesh " + quoted(mesh.name) + " is not in the table");
  return *root;
}

std::vector<MeshTable> split_by_universe(const MeshTable& table) {
  std::vector<MeshTable> parts;
  std::unordered_map<const Universe*, size_t> part_of;
  for (const Mesh& mesh : table.meshes) {
    const auto [known, fresh] = part_of.try_emplace(mesh.universe.get(), parts.size());
    if (fresh) parts.emplace_back();
    parts[known->second].meshes.push_back(mesh);
  }
  for (const Flatten& flatten : table.flattens) {
    if (const auto known = part_of.find(flatten.universe.get()); known != part_of.end())
      parts[known->second].flattens.push_back(flatten);
  }
  return parts;
}

namespace {

// The ranks of a table: 0 to `first` - 1, and the others, ascending.
struct RankList {
  int64_t first = 0;
  std::vector<int64_t> others;
};

RankList list_ranks(Universes universes) {
  RankList list;
  for (const auto& universe : universes) {
    if (universe->ranks.empty()) list.first = std::max(list.first, universe->world);
  }
  for (const auto& universe : universes) {
    for (const int64_t rank : universe->ranks) {
      if (rank >= list.first) list.others.push_back(rank);
    }
  }
  std::sort(list.others.begin(), list.others.end());
  list.others.erase(std::unique(list.others.begin(), list.others.end()), list.others.end());
  return list;
}

}  // namespace

int64_t rank_count(Universes universes) {
  if (universes.size() == 1) return universes.front()->world;
  const RankList list = list_ranks(universes);
  return list.first + std::ssize(list.others);
}

int64_t rank_count(const MeshTable& table) { return rank_count(universes_of(table)); }

Universe joined_universe(const MeshTable& table) {
  const auto universes = universes_of(table);
  if (universes.size() == 1) return *universes.front();
  RankList list = list_ranks(universes);
  Universe all{list.first + std::ssize(list.others), {}};
  const bool identity =
      list.others.empty() || list.others.back() == all.world - 1;  // distinct and 0 or more
  if (identity) return all;
  all.ranks.reserve(static_cast<size_t>(all.world));
  for (int64_t rank = 0; rank < list.first; ++rank) all.ranks.push_back(rank);
  all.ranks.insert(all.ranks.end(), list.others.begin(), list.others.end());
  return all;
}

}  // namespace meshplan
