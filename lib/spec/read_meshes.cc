#include "spec/read_meshes.h"

#include <algorithm>

#include "spec/mesh_parts.h"

namespace meshplan {
namespace {

void read_flattened(Reader& reader, uint32_t index, ReadMeshes& made) {
  constexpr std::array<KeyRule, 2> rules{{{"dims", true}, {"name"}}};
  for (const uint32_t entry :
       reader.elements(index, "\"flattened\"").value_or(std::vector<uint32_t>{})) {
    const auto found = reader.members(entry, rules, "a flattened mesh");
    if (!found) continue;
    const auto [dims_node, name_node] = *found;
    const auto name =
        name_node != 0 ? reader.name(name_node, "\"name\"") : std::optional<std::string>("");
    if (made.table.meshes.empty() || dims_node == 0) continue;
    const Mesh& mesh = made.table.meshes.front();
    const auto dims = read_dim_list(reader, dims_node, "\"dims\"", mesh);
    if (!dims || !name) continue;
    const bool ordered = descends(mesh, *dims);
    const Status declared = declare_flatten(made.table, mesh.name, names_at(mesh, *dims), *name);
    if (!declared) {
      report_failure(reader, ordered ? "E0309" : "E0308",
                     ordered && name_node != 0 ? name_node : dims_node, declared.error());
    }
  }
}

}  // namespace

std::optional<size_t> read_mesh_name(Reader& reader, uint32_t index, std::string_view what,
                                     const ReadMeshes& meshes) {
  const auto given = reader.text(index, what);
  if (!given) return std::nullopt;
  if (const auto known = find_mesh(meshes.table, *given)) return known;
  if (meshes.names_lost || meshes.broken.contains(*given)) return std::nullopt;
  const std::string name(*given);
  const auto all_names = [&] {
    std::vector<std::string> names;
    for (const Mesh& mesh : meshes.table.meshes) names.push_back(mesh.name);
    for (const std::string& broken : meshes.broken) names.push_back(broken);
    return names;
  };
  reader.error_naming("E0305", index, "there is no mesh " + quote(name), name, all_names,
                      "the meshes so far are ");
  return std::nullopt;
}

std::optional<size_t> read_dim_name(Reader& reader, uint32_t index, const Mesh& mesh) {
  const auto given = reader.text(index, "a mesh dim");
  if (!given) return std::nullopt;
  if (const auto dim = find_dim(mesh, *given)) return dim;
  const std::string name(*given);
  reader.error("E0306", index, "mesh " + quote(mesh.name) + " has no dim " + quote(name),
               suggestion(name, dim_names(mesh), "its dims are "));
  return std::nullopt;
}

std::optional<std::vector<size_t>> read_dim_list(Reader& reader, uint32_t index,
                                                 std::string_view what, const Mesh& mesh) {
  const auto list = reader.elements(index, what);
  if (!list) return std::nullopt;
  if (list->empty()) {
    reader.error("E0211", index, std::string(what) + " is empty",
                 {"name one mesh dim or more", {}, 0, {}});
    return std::nullopt;
  }
  const size_t before = reader.errors();
  std::vector<size_t> dims;
  std::vector<uint32_t> nodes;
  for (const uint32_t entry : *list) {
    const auto dim = read_dim_name(reader, entry, mesh);
    if (!dim) continue;
    const auto same = std::find(dims.begin(), dims.end(), *dim);
    if (same != dims.end()) {
      reader.error("E0307", entry, "mesh dim " + quote(mesh.dims[*dim].name) + " is listed twice",
                   {"list each once", {}, nodes[same - dims.begin()], "first listed here"});
      continue;
    }
    dims.push_back(*dim);
    nodes.push_back(entry);
  }
  if (reader.errors() > before) return std::nullopt;
  return dims;
}

ReadMeshes read_simple_mesh(Reader& reader, uint32_t index) {
  constexpr std::array<KeyRule, 3> rules{{{"dims", true}, {"ranks"}, {"flattened"}}};
  ReadMeshes made;
  made.broken.emplace("mesh");
  const auto found = reader.members(index, rules, "\"mesh\"");
  if (!found) return made;
  const auto [dims_node, ranks_node, flattened_node] = *found;
  const auto dims = dims_node != 0 ? read_dims(reader, dims_node) : std::nullopt;
  const auto ranks = ranks_node != 0 ? read_ranks(reader, ranks_node, dims ? product_of(*dims) : -1)
                                     : std::optional<std::vector<int64_t>>(std::vector<int64_t>{});
  if (dims && ranks) {
    const Status added = add_root(made.table, "mesh", product_of(*dims), *ranks, *dims);
    if (added) {
      made.broken.clear();
    } else {
      report_failure(reader, "E0302", index, added.error());
    }
  }
  if (flattened_node != 0) read_flattened(reader, flattened_node, made);
  return made;
}

}  // namespace meshplan
