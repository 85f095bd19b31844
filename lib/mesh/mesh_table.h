// All meshes of one universe, with the flattens declared on any of them.
//
// A flatten is found by its layout, not by its name or by the view that declared it: dims dp and tp
// of any mesh are declared flattened if some flatten (or, for a root of one dim under the native
// rules, the root itself) has the layout of dp and tp together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mesh/mesh.h"

namespace meshplan {

// One declared flattened dim. `dims` are the flattened dims, in mesh order.
struct Flatten {
  std::string name;
  std::vector<std::string> dims;
  std::string of;  // the mesh whose dims they are
  Layout layout;   // canonical
  std::string group_options;
  bool operator==(const Flatten&) const = default;
};

struct MeshTable {
  std::shared_ptr<const Universe> universe;
  std::vector<Mesh> meshes;       // in order of declaration; the first is the root
  std::vector<Flatten> flattens;  // in order of declaration
};

[[nodiscard]] std::optional<size_t> find_mesh(const MeshTable& table, std::string_view name);

// The operations of a spec's `meshes` list. Each adds one mesh called `name` (flatten also adds the
// flatten) or returns an error. Mesh names must be unique; other errors are listed with each
// operation.
[[nodiscard]] Status add_root(MeshTable& table, std::string name, int64_t world,
                              std::vector<int64_t> ranks,
                              const std::vector<std::pair<std::string, int64_t>>& dims,
                              std::string group_options = {});
// Errors: strides that do not descend, dims of size 1 ignored (the message suggests `transpose`);
// unknown or repeated dims.
[[nodiscard]] Status add_slice(MeshTable& table, std::string name, std::string_view of,
                               const std::vector<std::string>& dims,
                               std::string group_options = {});
// An empty `dim` becomes the names joined by "_", an empty `name` becomes `dim`. Declaring the same
// name for the same layout again does nothing, and so does flattening a 1-D mesh into its own name.
// A name used by another layout or by a dim of the root is an error.
[[nodiscard]] Status add_flatten(MeshTable& table, std::string name, std::string_view of,
                                 const std::vector<std::string>& dims, std::string dim = {},
                                 std::string group_options = {});
[[nodiscard]] Status add_unflatten(MeshTable& table, std::string name, std::string_view of,
                                   std::string_view dim, const std::vector<int64_t>& sizes,
                                   const std::vector<std::string>& dims,
                                   std::string group_options = {});
[[nodiscard]] Status add_concatenate(MeshTable& table, std::string name,
                                     const std::vector<std::string>& meshes,
                                     std::string group_options = {});
[[nodiscard]] Status add_transpose(MeshTable& table, std::string name, std::string_view of,
                                   const std::vector<std::string>& dims,
                                   std::string group_options = {});
// An entry of "flattened" in the simple form: declares the flatten without adding a mesh.
[[nodiscard]] Status declare_flatten(MeshTable& table, std::string_view of,
                                     const std::vector<std::string>& dims, std::string name = {});

// The declared flatten of these dims of the mesh, in any order: its layout equals group_layout of
// the dims in mesh order.
[[nodiscard]] const Flatten* find_flatten(const MeshTable& table, const Mesh& mesh,
                                          const std::vector<size_t>& dims);
// The same under the native rules, where a root of one dim is the flatten of every view that covers
// the world: dims that together are the whole world count as declared, under the name of the root's
// dim.
[[nodiscard]] std::optional<Flatten> find_native_flatten(const MeshTable& table, const Mesh& mesh,
                                                         const std::vector<size_t>& dims);

}  // namespace meshplan
