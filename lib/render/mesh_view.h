// Output of `meshplan mesh SPEC`: the meshes of a file, their layouts, and shared communicators;
// where a file has several universes, one after another.
//
// Ranks are enumerated only on request: a world of a million ranks prints as fast and as short as
// one of 64. Pictures of large meshes show a corner and the number of ranks omitted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "mesh/mesh_table.h"
#include "tensor/request.h"

namespace meshplan {

// The most ranks of a world that --ranks lists.
constexpr int64_t max_listed_ranks = 1'048'576;

struct MeshViewOptions {
  bool ranks = false;  // --ranks: every communicator's ranks in full
  // --rank R: coordinates of one global rank in every mesh
  std::optional<int64_t> rank{};
  bool color = false;                         // ANSI colours in the text form, one a group
  int64_t width = 100;                        // columns that a picture may use
  WorldGroup world_group = WorldGroup::init;  // which of the two counts is the job's own
};

// Both end in a newline. Errors (bad_input): a rank that is in no universe, a world too large to
// list.
[[nodiscard]] Result<std::string> mesh_view_text(const MeshTable& table,
                                                 const MeshViewOptions& options);
// "meshplan/mesh/1": {"schema", "meshes", "groups"}; with `ranks` also "ranks" in each; with `rank`
// also "rank" at the top and, in each mesh, "copy" (which copy of the mesh holds the rank, by
// ascending base position) and "coordinates" (one per dim).
[[nodiscard]] Result<std::string> mesh_view_json(const MeshTable& table,
                                                 const MeshViewOptions& options);

// Whether what the options ask for can be listed: what both forms check before they make anything
// of the ranks.
[[nodiscard]] Status check_listed(const MeshTable& table, const MeshViewOptions& options);

// The position of the rank asked for in each of these universes that has it.
struct RankPosition {
  std::shared_ptr<const Universe> universe;
  int64_t position = 0;
};
[[nodiscard]] Result<std::vector<RankPosition>> positions_of_rank(const MeshTable& table,
                                                                  int64_t rank);

}  // namespace meshplan
