#include "mesh/groups.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/int_math.h"
#include "base/text.h"

namespace meshplan {
namespace {

bool is_world(const Group& group) {
  return group.count == 1 && group.options.empty() && group.size == group.universe->world;
}

// The world of a table of one universe.
int64_t world_of(const MeshTable& table) {
  MESHPLAN_CHECK(universes_of(table).size() == 1, "groups are counted universe by universe");
  return table.meshes.front().universe->world;
}

}  // namespace

std::vector<Group> group_table(const MeshTable& table) {
  std::vector<Group> groups;
  std::map<std::tuple<const Universe*, Layout, std::string>, size_t> index;
  const auto use = [&](const std::shared_ptr<const Universe>& universe, const Layout& layout,
                       const std::string& options, GroupUser user) {
    const auto [entry, added] = index.try_emplace({universe.get(), layout, options}, groups.size());
    if (added) {
      const int64_t members = size(layout);
      groups.push_back({universe, layout, options, members, universe->world / members, {}});
    }
    std::vector<GroupUser>& users = groups[entry->second].users;
    if (std::find(users.begin(), users.end(), user) == users.end())
      users.push_back(std::move(user));
  };
  for (const Mesh& mesh : table.meshes) {
    for (const MeshDim& dim : mesh.dims)
      use(mesh.universe, dim.layout, dim.group_options, {mesh.name, dim.name, {dim.name}});
  }
  for (const Flatten& flatten : table.flattens) {
    const bool has_mesh =
        std::any_of(table.meshes.begin(), table.meshes.end(), [&](const Mesh& mesh) {
          return mesh.universe == flatten.universe && mesh.dims.size() == 1 &&
                 mesh.dims[0].name == flatten.name && mesh.dims[0].layout == flatten.layout;
        });
    if (!has_mesh)
      use(flatten.universe, flatten.layout, flatten.group_options,
          {flatten.of, flatten.name, flatten.dims});
  }
  return groups;
}

const Group& group_of(const std::vector<Group>& groups, const Mesh& mesh, const MeshDim& dim) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
    return group.universe == mesh.universe && group.layout == dim.layout &&
           group.options == dim.group_options;
  });
  MESHPLAN_CHECK(found != groups.end(),
                 "the group table holds every dim of every mesh, and lacks " + quoted(dim.name));
  return *found;
}

GroupCounts counts_with_world_group(const MeshTable& table) {
  const int64_t world = world_of(table);
  GroupCounts counts{1, 0, world};
  for (const Group& group : group_table(table)) {
    if (group.size == 1 || is_world(group)) continue;
    counts.communicators = saturating_add(counts.communicators, group.count);
    counts.splits += 1;
    counts.members = saturating_add(counts.members, world);
  }
  return counts;
}

GroupCounts counts_without_world_group(const MeshTable& table) {
  GroupCounts counts;
  const int64_t world = world_of(table);
  for (const Group& group : group_table(table)) {
    if (group.size == 1) continue;
    counts.communicators = saturating_add(counts.communicators, group.count);
    counts.members = saturating_add(counts.members, world);
  }
  return counts;
}

std::vector<std::vector<int64_t>> group_ranks(const Universe& universe, const Layout& layout) {
  const auto copies = complement(layout, universe.world);
  MESHPLAN_CHECK(copies.ok(),
                 "the communicators of a group tile the universe: " + copies.error().message);
  const std::vector<int64_t> members = offsets(layout);
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t base : offsets(*copies)) {
    std::vector<int64_t>& group = groups.emplace_back();
    group.reserve(members.size());
    for (const int64_t member : members) group.push_back(rank_at(universe, base + member));
  }
  return groups;
}

}  // namespace meshplan
