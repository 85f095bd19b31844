// All meshes of one file, over one universe, with the flattens that any of them declared.
//
// A flatten is found by layout, whichever view declared it and whatever it is called: dims dp and tp of any mesh are declared flattened
// when some flatten (or, for a root of one dim under the native rules, the root itself) has the layout of dp and tp taken together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mesh/mesh.h"

namespace meshplan {

// One declared flattened dim. `dims` are the names it was made of, in mesh order.
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

// The operations of the contract's `meshes` list. Each adds one mesh called `name` (flatten: also the flatten) or says why it cannot.
// Names: a mesh name is taken once; see each for its other errors.
[[nodiscard]] Status add_root(MeshTable& table, std::string name, int64_t world, std::vector<int64_t> ranks,
                              const std::vector<std::pair<std::string, int64_t>>& dims, std::string group_options = {});
// Error where the strides do not descend (size-1 dims apart), naming `transpose`; unknown or repeated dims.
[[nodiscard]] Status add_slice(MeshTable& table, std::string name, std::string_view of, const std::vector<std::string>& dims,
                               std::string group_options = {});
// `dim` empty: the names joined by "_"; `name` empty: `dim`. The same name for the same layout again is a no-op; a name taken by another
// layout or by a dim of the root is an error (a 1-D mesh flattened into its own name is a no-op).
[[nodiscard]] Status add_flatten(MeshTable& table, std::string name, std::string_view of, const std::vector<std::string>& dims,
                                 std::string dim = {}, std::string group_options = {});
[[nodiscard]] Status add_unflatten(MeshTable& table, std::string name, std::string_view of, std::string_view dim,
                                   const std::vector<int64_t>& sizes, const std::vector<std::string>& dims, std::string group_options = {});
[[nodiscard]] Status add_concatenate(MeshTable& table, std::string name, const std::vector<std::string>& meshes,
                                     std::string group_options = {});
[[nodiscard]] Status add_transpose(MeshTable& table, std::string name, std::string_view of, const std::vector<std::string>& dims,
                                   std::string group_options = {});
// The simple form's "flattened" entry on mesh `of`: declares without adding a mesh.
[[nodiscard]] Status declare_flatten(MeshTable& table, std::string_view of, const std::vector<std::string>& dims, std::string name = {});

// The declared flatten of these dims of the mesh, whatever order they are listed in: its layout equals group_layout of the dims in mesh
// order.
[[nodiscard]] const Flatten* find_flatten(const MeshTable& table, const Mesh& mesh, const std::vector<size_t>& dims);
// The same under the native rules, where a root of one dim counts as the flatten of every view that covers the world: dims that together
// are the whole world are declared then, under the root dim's name.
[[nodiscard]] std::optional<Flatten> find_native_flatten(const MeshTable& table, const Mesh& mesh, const std::vector<size_t>& dims);

}  // namespace meshplan
