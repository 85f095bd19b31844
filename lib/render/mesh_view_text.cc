#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "mesh/coordinates.h"
#include "mesh/groups.h"
#include "render/mesh_picture.h"
#include "render/mesh_view.h"

namespace meshplan {
namespace {

std::string ranks_text(const Universe& universe, const Layout& layout, int64_t base,
                       int64_t limit) {
  std::string text;
  const int64_t members = size(layout);
  for (int64_t i = 0; i < members; ++i) {
    if (i == limit) return text + " ... (" + with_commas(members) + " ranks)";
    text += (i > 0 ? " " : "") + std::to_string(rank_at(universe, base + offset_at(layout, i)));
  }
  return text;
}

std::string counts_text(const char* name, const GroupCounts& counts, int64_t world, bool own) {
  return std::string("  world group ") + name + (own ? " (this job)" : "") + ": " +
         counted(counts.communicators, "communicator") + ", " + counted(counts.splits, "split") +
         ", " + counted(counts.members, "member") + ", " + with_commas(counts.members / world) +
         " on each rank\n";
}

// Two columns or more, each as wide as its widest cell.
std::string table_text(const std::vector<std::vector<std::string>>& rows,
                       const std::string& indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string communicators_text(int64_t count, int64_t members) {
  if (members == 1) return "none: one rank each";
  return with_commas(count) + " of " + with_commas(members);
}

std::string sharing_text(const Group& group, const std::string& mesh, const std::string& name) {
  if (group.size == 1) return "";
  std::string text;
  for (const GroupUser& user : group.users) {
    if (user.mesh == mesh && user.name == name) continue;
    text += (text.empty() ? "" : ", ") + escaped(user.mesh + "." + user.name);
  }
  return text;
}

std::string all_ranks(const Universe& universe, const Layout& layout) {
  std::string text;
  int64_t index = 0;
  for (const auto& list : group_ranks(universe, layout)) {
    text += "    " + group_letters(index++) + " ";
    for (const int64_t rank : list) text += " " + std::to_string(rank);
    text += "\n";
  }
  return text;
}

std::string mesh_text(const Mesh& mesh, const std::vector<Group>& groups,
                      const MeshViewOptions& options) {
  const int64_t copies = mesh_copies(mesh);
  std::string text = "\n" + escaped(mesh.name) + ": " + to_text(mesh) +
                     (copies > 1 ? ", " + with_commas(copies) + " copies" : "") + "\n";
  std::vector<std::vector<std::string>> rows{
      {"dim", "size", "layout", "communicators", "shared with"}};
  for (const MeshDim& dim : mesh.dims) {
    const Group& group = group_of(groups, mesh, dim);
    rows.push_back({escaped(dim.name), with_commas(dim.size), to_text(dim.layout),
                    communicators_text(group.count, group.size),
                    sharing_text(group, mesh.name, dim.name)});
    if (!dim.group_options.empty())
      rows.back().back() += " (group options " + one_line(dim.group_options) + ")";
  }
  text += table_text(rows, "  ");
  text += mesh_picture(mesh, {.color = options.color, .width = options.width});
  if (options.ranks) {
    for (const MeshDim& dim : mesh.dims) {
      if (dim.size > 1)
        text += "  communicators of " + escaped(dim.name) + "\n" +
                all_ranks(*mesh.universe, dim.layout);
    }
  }
  return text;
}

std::string flattens_text(const std::vector<Group>& groups, const MeshViewOptions& options) {
  std::vector<std::vector<std::string>> rows{
      {"flattened", "size", "layout", "communicators", "of", "shared with"}};
  std::string lists;
  for (const Group& group : groups) {
    for (const GroupUser& user : group.users) {
      if (user.dims == std::vector<std::string>{user.name}) continue;
      rows.push_back({escaped(user.name), with_commas(group.size), to_text(group.layout),
                      communicators_text(group.count, group.size),
                      escaped(user.mesh + ": " + join(user.dims, ", ")),
                      sharing_text(group, user.mesh, user.name)});
      if (options.ranks && group.size > 1)
        lists += "  communicators of " + escaped(user.name) + "\n" +
                 all_ranks(*group.universe, group.layout);
    }
  }
  return rows.size() == 1 ? "" : "\n" + table_text(rows, "") + lists;
}

// What a rank is in one universe; `several`: the file has others.
std::string rank_text(const MeshTable& table, int64_t rank, const RankPosition& found,
                      bool several) {
  const auto& [universe, position] = found;
  const std::vector<Group> groups = group_table(table);
  std::string text = "rank " + std::to_string(rank);
  if (several) {
    for (const Mesh& mesh : table.meshes) {
      if (mesh.universe != universe) continue;
      text += " of universe " + escaped(mesh.name);
      break;
    }
  }
  if (!universe->ranks.empty()) text += ", entry " + std::to_string(position) + " of the rank map";
  text += "\n";
  for (const Mesh& mesh : table.meshes) {
    if (mesh.universe != universe) continue;
    const Coordinates at = coordinates_at(mesh, position);
    const int64_t copies = mesh_copies(mesh);
    text +=
        "\n" + escaped(mesh.name) + ": " + to_text(mesh) +
        (copies > 1 ? ", in copy " + std::to_string(at.copy) + " of " + with_commas(copies) : "") +
        "\n";
    std::vector<std::vector<std::string>> rows{{"dim", "coordinate", "its communicator"}};
    for (size_t i = 0; i < mesh.dims.size(); ++i) {
      const MeshDim& dim = mesh.dims[i];
      const int64_t base = position - offset_at(dim.layout, at.along[i]);
      rows.push_back(
          {escaped(dim.name), std::to_string(at.along[i]) + " of " + std::to_string(dim.size),
           group_of(groups, mesh, dim).size == 1 ? "none: one rank"
                                                 : ranks_text(*universe, dim.layout, base, 16)});
    }
    text += table_text(rows, "  ");
  }
  return text;
}

// One universe, which is a table of its own; `several`: the file has others.
std::string universe_text(const MeshTable& table, const MeshViewOptions& options, bool several) {
  const std::vector<Group> groups = group_table(table);
  const Universe& universe = *table.meshes.front().universe;
  const int64_t world = universe.world;
  const bool init = options.world_group == WorldGroup::init;
  std::string text;
  if (several) text += "universe " + escaped(table.meshes.front().name) + ": ";
  text += to_text(universe) + "; " + std::to_string(table.meshes.size()) +
          (table.meshes.size() == 1 ? " mesh, " : " meshes, ") +
          counted(std::ssize(groups), "group") + "\n";
  text += counts_text("init", counts_with_world_group(table), world, init);
  text += counts_text("skip", counts_without_world_group(table), world, !init);
  const bool pictured =
      std::any_of(groups.begin(), groups.end(), [](const Group& group) { return group.size > 1; });
  if (pictured)
    text +=
        "  below, each rank has one letter per dim; ranks with the same letter share a communicator\n";
  for (const Mesh& mesh : table.meshes) text += mesh_text(mesh, groups, options);
  text += flattens_text(groups, options);
  return text;
}

}  // namespace

Status check_listed(const MeshTable& table, const MeshViewOptions& options) {
  int64_t world = 0;
  for (const auto& universe : universes_of(table)) world = std::max(world, universe->world);
  if (!options.ranks || world <= max_listed_ranks) return Done{};
  return bad_input("--ranks is limited to worlds of " + with_commas(max_listed_ranks) +
                   " ranks, this one has " + with_commas(world) +
                   "; omit it, or use --rank R for one rank");
}

Result<std::vector<RankPosition>> positions_of_rank(const MeshTable& table, int64_t rank) {
  std::vector<RankPosition> positions;
  std::vector<std::string> worlds;
  for (const auto& universe : universes_of(table)) {
    const auto position = position_of_rank(*universe, rank);
    if (position) {
      positions.push_back({universe, *position});
    } else {
      worlds.push_back(to_text(*universe));
    }
  }
  if (!positions.empty()) return positions;
  return bad_input("rank " + std::to_string(rank) + " is not in the " + join(worlds, " or the "));
}

Result<std::string> mesh_view_text(const MeshTable& table, const MeshViewOptions& options) {
  if (auto listed = check_listed(table, options); !listed) return listed.error();
  std::string text;
  const bool several = has_several_universes(table);
  if (options.rank) {
    const auto positions = positions_of_rank(table, *options.rank);
    if (!positions) return positions.error();
    for (const RankPosition& at : *positions)
      text += (text.empty() ? "" : "\n") + rank_text(table, *options.rank, at, several);
    return text;
  }
  for (const MeshTable& universe : split_by_universe(table))
    text += (text.empty() ? "" : "\n") + universe_text(universe, options, several);
  return text;
}

}  // namespace meshplan
