// Reads a spec's "mesh" or "meshes" into a mesh table.
#pragma once

#include <set>
#include <string>

#include "json/reader.h"
#include "mesh/mesh_table.h"

namespace meshplan {

// The meshes that could be read, and the names of those that could not: a reference to one of these
// is not an error of its own.
struct ReadMeshes {
  MeshTable table;
  std::set<std::string, std::less<>> broken;
  // Some operation has no readable name, so no name can be reported as unknown.
  bool names_lost = false;
};

// The simple form: one mesh called "mesh", with its declared flattens.
[[nodiscard]] ReadMeshes read_simple_mesh(Reader& reader, uint32_t index);
// A list of operations.
[[nodiscard]] ReadMeshes read_meshes(Reader& reader, uint32_t index);

// The mesh named by the text at `index`. No value: reported, or a consequence of a reported error.
[[nodiscard]] std::optional<size_t> read_mesh_name(Reader& reader, uint32_t index,
                                                   std::string_view what, const ReadMeshes& meshes);

// The dim of `mesh` called by the text at `index`.
[[nodiscard]] std::optional<size_t> read_dim_name(Reader& reader, uint32_t index, const Mesh& mesh);
// A list of distinct dims of `mesh`, in the order given.
[[nodiscard]] std::optional<std::vector<size_t>> read_dim_list(Reader& reader, uint32_t index,
                                                               std::string_view what,
                                                               const Mesh& mesh);

}  // namespace meshplan
