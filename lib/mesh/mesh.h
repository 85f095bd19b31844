// Device meshes: named axes over one world of ranks.
//
//     universe   ranks 0 1 2 3 4 5 6 7, stored once           rank map: position -> global rank
//     root       dp 2 x tp 4       dp = 2:4   tp = 4:1        layouts of positions in the rank map
//     root[dp]   dp 2              4 copies: one for each coordinate of the remaining ranks
//
// A mesh is a universe and one layout per dim. Rank (c0, c1, ...) of the copy at base b is
// rank_at(b + sum of offset_at(dim_i, c_i)). All views of one world share one universe. Names are
// labels: meshes are equal if universe and layouts are.
//
// Ranks are not listed: nothing here takes time or memory proportional to the world unless it says
// so (`materialise`).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "layout/layout.h"

namespace meshplan {

// The largest global id: that of the outermost unit of a topology, which holds every rank, counts
// as many below INT64_MAX.
constexpr int64_t last_rank = INT64_MAX - 1;

// The rank map of a world. Empty `ranks`: position i is global rank i.
struct Universe {
  int64_t world = 1;           // number of positions
  std::vector<int64_t> ranks;  // empty or `world` distinct global ids >= 0
  bool operator==(const Universe&) const = default;
};
[[nodiscard]] inline int64_t rank_at(const Universe& universe, int64_t position) {
  return universe.ranks.empty() ? position : universe.ranks[position];
}
// Global rank -> position. O(world) once.
[[nodiscard]] std::vector<std::pair<int64_t, int64_t>> positions_by_rank(const Universe& universe);

// "world of 8 ranks, 0 to 7", or with the first entries of its rank map.
[[nodiscard]] std::string to_text(const Universe& universe);
// The global ids in row-major order, in runs: "8-15" or "0-3 12 8-11". At most 8 runs, then "...".
[[nodiscard]] std::string rank_runs(const Universe& universe);

struct MeshDim {
  std::string name;
  int64_t size = 1;
  Layout layout;  // canonical; size(layout) == size
  // canonical JSON; identifies, with the layout, the communicators of the dim; empty: none
  std::string group_options{};
  bool operator==(const MeshDim&) const = default;
};

struct Mesh {
  std::string name;
  std::shared_ptr<const Universe> universe;
  std::vector<MeshDim> dims;
  std::string group_options;  // canonical JSON text of the operation's "group_options"; empty: none
};

// Whether rank map and layouts are the same; names are ignored.
[[nodiscard]] bool same_devices(const Mesh& a, const Mesh& b);

// Ranks of one copy: the product of the dim sizes.
[[nodiscard]] int64_t mesh_size(const Mesh& mesh);
// Copies of the mesh in its universe: world / mesh_size.
[[nodiscard]] int64_t mesh_copies(const Mesh& mesh);
// {2, 4}
[[nodiscard]] std::vector<int64_t> mesh_shape(const Mesh& mesh);
[[nodiscard]] std::vector<std::string> dim_names(const Mesh& mesh);
[[nodiscard]] std::optional<size_t> find_dim(const Mesh& mesh, std::string_view name);
// The layout of several dims taken together, in the order given, coalesced.
[[nodiscard]] Layout group_layout(const Mesh& mesh, const std::vector<size_t>& dims);
// Position in the rank map of the rank with row-major index `index` in copy `copy` (copies by
// ascending base position).
[[nodiscard]] int64_t position_of(const Mesh& mesh, int64_t copy, int64_t index);
// Global ranks of copy 0, the one that holds rank map entry 0, row-major. O(mesh_size).
[[nodiscard]] std::vector<int64_t> materialise(const Mesh& mesh);

// A row-major mesh over ranks 0..N-1 or over the given rank map (the simple form of a spec).
// Errors: sizes < 1, product beyond int64, duplicate dim names, wrong count of ranks, repeated or
// negative ranks.
[[nodiscard]] Result<Mesh> make_mesh(std::string name,
                                     const std::vector<std::pair<std::string, int64_t>>& dims,
                                     std::vector<int64_t> ranks = {});

// "dp 2 x tp 4", for messages.
[[nodiscard]] std::string to_text(const Mesh& mesh);

}  // namespace meshplan
