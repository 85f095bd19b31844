#include <nlohmann/json.hpp>

#include "mesh/coordinates.h"
#include "mesh/groups.h"
#include "render/mesh_view.h"

namespace meshplan {
namespace {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_numbers(std::string& out, const std::vector<int64_t>& values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(values[i]);
  }
  out += ']';
}

void append_names(std::string& out, const std::vector<std::string>& names) {
  out += '[';
  for (size_t i = 0; i < names.size(); ++i) out += (i > 0 ? ", " : "") + json_text(names[i]);
  out += ']';
}

void append_mesh(std::string& out, const Mesh& mesh, const MeshViewOptions& options, std::optional<int64_t> position) {
  out += "    {\"name\": " + json_text(mesh.name) + ", \"shape\": ";
  append_numbers(out, mesh_shape(mesh));
  out += ", \"dims\": [";
  for (size_t i = 0; i < mesh.dims.size(); ++i) {
    const MeshDim& dim = mesh.dims[i];
    out += (i > 0 ? ", " : "") + ("{\"name\": " + json_text(dim.name)) + ", \"size\": " + std::to_string(dim.size) + ", \"layout\": \"" +
           to_text(dim.layout) + "\"}";
  }
  out += ']';
  if (position) {
    const Coordinates at = coordinates_at(mesh, *position);
    out += ", \"copy\": " + std::to_string(at.copy) + ", \"coordinates\": ";
    append_numbers(out, at.along);
  }
  if (options.ranks) {
    out += ", \"ranks\": ";
    append_numbers(out, materialise(mesh));
  }
  out += '}';
}

void append_group(std::string& out, const Group& group, const GroupUser& user, const MeshTable& table, const MeshViewOptions& options) {
  std::vector<std::string> sharers;
  for (const GroupUser& other : group.users) {
    if (!(other == user)) sharers.push_back(other.mesh + "." + other.name);
  }
  out += "    {\"mesh\": " + json_text(user.mesh) + ", \"dims\": ";
  append_names(out, user.dims);
  out += ", \"layout\": \"" + to_text(group.layout) + "\", \"size\": " + std::to_string(group.size) +
         ", \"count\": " + std::to_string(group.count) + ", \"shared_with\": ";
  append_names(out, sharers);
  if (options.ranks) {
    out += ", \"ranks\": [";
    bool first = true;
    for (const auto& list : group_ranks(*table.universe, group.layout)) {
      if (!first) out += ", ";
      first = false;
      append_numbers(out, list);
    }
    out += ']';
  }
  out += '}';
}

}  // namespace

Result<std::string> mesh_view_json(const MeshTable& table, const MeshViewOptions& options) {
  if (auto listed = check_listed(table, options); !listed) return listed.error();
  std::optional<int64_t> position;
  std::string out = "{\n  \"schema\": \"meshplan/mesh/1\",\n";
  if (options.rank) {
    const auto found = position_of_rank(*table.universe, *options.rank);
    if (!found) return found.error();
    position = *found;
    out += "  \"rank\": " + std::to_string(*options.rank) + ",\n";
  }
  out += "  \"meshes\": [\n";
  for (size_t i = 0; i < table.meshes.size(); ++i) {
    if (i > 0) out += ",\n";
    append_mesh(out, table.meshes[i], options, position);
  }
  out += "\n  ],\n  \"groups\": [\n";
  // By mesh and dim in order of declaration, then the flattens that have no mesh of their own.
  const std::vector<Group> groups = group_table(table);
  bool first = true;
  const auto separate = [&] {
    if (!first) out += ",\n";
    first = false;
  };
  for (const Mesh& mesh : table.meshes) {
    for (const MeshDim& dim : mesh.dims) {
      separate();
      append_group(out, group_of(groups, dim), {mesh.name, dim.name, {dim.name}}, table, options);
    }
  }
  for (const Flatten& flatten : table.flattens) {
    for (const Group& group : groups) {
      for (const GroupUser& user : group.users) {
        if (user.mesh != flatten.of || user.name != flatten.name || user.dims != flatten.dims) continue;
        if (user.dims == std::vector<std::string>{user.name}) continue;
        separate();
        append_group(out, group, user, table, options);
      }
    }
  }
  out += "\n  ]\n}\n";
  return out;
}

}  // namespace meshplan
