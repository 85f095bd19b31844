#include "json/write.h"
#include "mesh/coordinates.h"
#include "mesh/groups.h"
#include "render/mesh_view.h"

namespace meshplan {
namespace {

void write_mesh(JsonWriter& w, const Mesh& mesh, const MeshViewOptions& options,
                std::optional<int64_t> position) {
  w.open('{');
  w.fields({{"name", mesh.name}, {"shape", mesh_shape(mesh)}});
  w.list("dims", Breaks::one_line, mesh.dims, [&](const MeshDim& dim) {
    w.object({{"name", dim.name}, {"size", dim.size}, {"layout", to_text(dim.layout)}});
  });
  if (position) {
    const Coordinates at = coordinates_at(mesh, *position);
    w.fields({{"copy", at.copy}, {"coordinates", at.along}});
  }
  if (options.ranks) w.field("ranks", materialise(mesh));
  w.close();
}

void write_group(JsonWriter& w, const Group& group, const GroupUser& user,
                 const MeshViewOptions& options) {
  std::vector<std::string> sharers;
  for (const GroupUser& other : group.users) {
    if (!(other == user)) sharers.push_back(other.mesh + "." + other.name);
  }
  w.open('{');
  w.fields({{"mesh", user.mesh},
            {"dims", user.dims},
            {"layout", to_text(group.layout)},
            {"size", group.size},
            {"count", group.count},
            {"shared_with", sharers}});
  if (options.ranks) {
    w.list("ranks", group_ranks(*group.universe, group.layout),
           [&](const std::vector<int64_t>& ranks) { w.value(ranks); });
  }
  w.close();
}

}  // namespace

Result<std::string> mesh_view_json(const MeshTable& table, const MeshViewOptions& options) {
  if (auto listed = check_listed(table, options); !listed) return listed.error();
  std::vector<RankPosition> positions;
  JsonWriter w(2, Breaks::one_line);
  w.open('{', Breaks::lines);
  w.field("schema", "meshplan/mesh/1");
  if (options.rank) {
    auto found = positions_of_rank(table, *options.rank);
    if (!found) return found.error();
    positions = std::move(*found);
    w.field("rank", *options.rank);
  }
  w.list("meshes", Breaks::lines, table.meshes, [&](const Mesh& mesh) {
    std::optional<int64_t> position;
    for (const RankPosition& at : positions) {
      if (at.universe == mesh.universe) position = at.position;
    }
    write_mesh(w, mesh, options, position);
  });
  // By mesh and dim in order of declaration, then the flattens that have no mesh of their own.
  const std::vector<Group> groups = group_table(table);
  w.key("groups");
  w.open('[', Breaks::lines);
  for (const Mesh& mesh : table.meshes) {
    for (const MeshDim& dim : mesh.dims)
      write_group(w, group_of(groups, mesh, dim), {mesh.name, dim.name, {dim.name}}, options);
  }
  for (const Flatten& flatten : table.flattens) {
    for (const Group& group : groups) {
      for (const GroupUser& user : group.users) {
        if (user.mesh != flatten.of || user.name != flatten.name || user.dims != flatten.dims)
          continue;
        if (user.dims == std::vector<std::string>{user.name}) continue;
        write_group(w, group, user, options);
      }
    }
  }
  w.close();
  w.close();
  return w.take();
}

}  // namespace meshplan
