// All meshes of a file, with the flattens declared on any of them.
//
//     universe train   ranks 0-7     train dp 2 x tp 4, and its views
//     universe serve   ranks 8-15    serve 8, and its views
//
// A file may hold several universes, on the same ranks, on some or on none in common. Each begins
// with a root; a view has the universe of the meshes that it is of, so what meshes share is told by
// the universe that they point to. Positions, layouts, copies, flattens and groups are within one
// universe: the same layout in two of them is two groups. What crosses from one to another is an
// exchange, and there ranks are known by their global ids, as topologies know them. It runs on the
// group of all ranks of both universes, since no mesh holds both of its ends.
//
// A flatten is found by its layout, not by its name or by the view that declared it: dims dp and tp
// of any mesh are declared flattened if some flatten has the layout of dp and tp together. Under
// the native rules the order of its ranks does not matter, tp and dp serve too, and a root of one
// dim is such a flatten.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "mesh/mesh.h"

namespace meshplan {

// One declared flattened dim. `dims` are the flattened dims, in the order of its ranks.
struct Flatten {
  std::string name;
  std::vector<std::string> dims;
  std::string of;  // the mesh whose dims they are
  Layout layout;   // canonical
  std::string group_options;
  std::shared_ptr<const Universe> universe{};  // of that mesh
  // In the same universe or in equal ones.
  bool operator==(const Flatten& other) const;
};

// Universe by universe, and in order of declaration in each.
struct MeshTable {
  std::vector<Mesh> meshes;  // the first of each universe is its root
  std::vector<Flatten> flattens;
};

// In the order of their roots.
[[nodiscard]] std::vector<std::shared_ptr<const Universe>> universes_of(const MeshTable& table);
[[nodiscard]] bool has_several_universes(const MeshTable& table);
// The root of the universe that the mesh is in.
[[nodiscard]] const Mesh& root_of(const MeshTable& table, const Mesh& mesh);
// The table in parts of one universe each.
[[nodiscard]] std::vector<MeshTable> split_by_universe(const MeshTable& table);
// How many ranks these universes have; one that is in several counts once. O(ranks listed).
using Universes = std::span<const std::shared_ptr<const Universe>>;
[[nodiscard]] int64_t rank_count(Universes universes);
[[nodiscard]] int64_t rank_count(const MeshTable& table);
// All of them: the universe itself where there is one, else by ascending id. O(rank_count).
[[nodiscard]] Universe joined_universe(const MeshTable& table);

[[nodiscard]] std::optional<size_t> find_mesh(const MeshTable& table, std::string_view name);

// The operations of a spec's `meshes` list. Each adds one mesh called `name` (flatten also adds the
// flatten) or returns an error. Mesh names must be unique; other errors are listed with each
// operation. A root begins a universe: `ranks` are its global ids, row-major; empty: 0 to world-1.
[[nodiscard]] Status add_root(MeshTable& table, std::string name, int64_t world,
                              std::vector<int64_t> ranks,
                              const std::vector<std::pair<std::string, int64_t>>& dims,
                              std::string group_options = {});
// The mesh, and behind the dims of a root those that are declared flattened in its universe: what a
// slice may name, as in PyTorch.
[[nodiscard]] Mesh with_flattened_dims(const MeshTable& table, const Mesh& mesh);
// The first two of these dims that have ranks in common, if any.
[[nodiscard]] std::optional<std::pair<size_t, size_t>> dims_sharing_ranks(
    const Mesh& mesh, const std::vector<size_t>& dims);
// Errors: strides that do not descend, dims of size 1 ignored (the message suggests `transpose`),
// but for all dims in the mesh's own order, as PyTorch; dims that share ranks, as a flattened one
// and what it is made of; unknown or repeated dims.
[[nodiscard]] Status add_slice(MeshTable& table, std::string name, std::string_view of,
                               const std::vector<std::string>& dims,
                               std::string group_options = {});
// The dims in any order; the communicator's ranks follow it. An empty `dim` becomes the names
// joined by "_", an empty `name` becomes `dim`. Declaring the same name for the same layout again
// does nothing, and so does flattening a 1-D mesh into its own name. A name that another layout of
// the universe or a dim of its root has is an error.
[[nodiscard]] Status add_flatten(MeshTable& table, std::string name, std::string_view of,
                                 const std::vector<std::string>& dims, std::string dim = {},
                                 std::string group_options = {});
[[nodiscard]] Status add_unflatten(MeshTable& table, std::string name, std::string_view of,
                                   std::string_view dim, const std::vector<int64_t>& sizes,
                                   const std::vector<std::string>& dims,
                                   std::string group_options = {});
// Errors: meshes of two universes; dims that share ranks.
[[nodiscard]] Status add_concatenate(MeshTable& table, std::string name,
                                     const std::vector<std::string>& meshes,
                                     std::string group_options = {});
[[nodiscard]] Status add_transpose(MeshTable& table, std::string name, std::string_view of,
                                   const std::vector<std::string>& dims,
                                   std::string group_options = {});
// An entry of "flattened" in the simple form: declares the flatten, of dims in mesh order, without
// adding a mesh.
[[nodiscard]] Status declare_flatten(MeshTable& table, std::string_view of,
                                     const std::vector<std::string>& dims, std::string name = {});
// The same of dims in any order, as add_flatten declares them.
[[nodiscard]] Status declare_listed(MeshTable& table, std::string_view of,
                                    const std::vector<std::string>& dims, std::string name = {});

// The flatten declared in the mesh's universe of these dims, in any order: its layout equals
// group_layout of the dims in mesh order, as PyTorch looks for it.
[[nodiscard]] const Flatten* find_flatten(const MeshTable& table, const Mesh& mesh,
                                          const std::vector<size_t>& dims);
// The same under the native rules, which place every chunk by the ranks of its group: a flatten of
// the dims in another order serves, one in mesh order before it. A root of one dim is the flatten
// of every view that covers the world: dims that together are the whole world count as declared,
// under the name of the root's dim.
[[nodiscard]] std::optional<Flatten> find_native_flatten(const MeshTable& table, const Mesh& mesh,
                                                         const std::vector<size_t>& dims);

}  // namespace meshplan
