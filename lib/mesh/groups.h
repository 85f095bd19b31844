// The communicators of a table: one entry per (universe, layout, group options), independent of the
// names of the dims that use it.
//
//     root   dp 2 x tp 4        dp 2:4   4 communicators      tp 4:1   2 communicators
//     view   root.tp unflattened into tp_o 2, tp_i 2 and flattened again: 4:1, the group of tp
//
// Ranks are not listed here; `group_ranks` lists them on request.
#pragma once

#include <string>
#include <vector>

#include "mesh/mesh_table.h"

namespace meshplan {

// A dim of a mesh, or a flatten declared on a mesh without a mesh of its own.
struct GroupUser {
  std::string mesh;
  std::string name;
  std::vector<std::string> dims;  // {name}, or the dims of the flatten
  bool operator==(const GroupUser&) const = default;
};

struct Group {
  std::shared_ptr<const Universe> universe;
  Layout layout;  // canonical
  std::string options;
  int64_t size = 1;              // ranks of one communicator
  int64_t count = 1;             // communicators: size * count = world
  std::vector<GroupUser> users;  // in order of declaration, never empty
};

// In order of first use. Law: no two entries of one universe have the same layout and options; the
// communicators of each entry partition its world.
[[nodiscard]] std::vector<Group> group_table(const MeshTable& table);

// The entry of a dim of a mesh, which must exist.
[[nodiscard]] const Group& group_of(const std::vector<Group>& groups, const Mesh& mesh,
                                    const MeshDim& dim);

// Cost of creating the groups of a table of one universe. Groups of one rank need no communicator.
struct GroupCounts {
  int64_t communicators = 0;  // total number over all ranks
  // calls of split on the world communicator; each creates all communicators of one entry
  int64_t splits = 0;
  int64_t members = 0;  // sum of the sizes of the communicators
  bool operator==(const GroupCounts&) const = default;
};
// "world_group": "init": the world communicator is created first and serves the group of the whole
// world without options; all others are split from it.
[[nodiscard]] GroupCounts counts_with_world_group(const MeshTable& table);
// "world_group": "skip": every communicator is created directly, that of the world only if a group
// needs it.
[[nodiscard]] GroupCounts counts_without_world_group(const MeshTable& table);

// Global ranks of every communicator of the layout, in communicator order, lists by ascending base
// position. O(world).
[[nodiscard]] std::vector<std::vector<int64_t>> group_ranks(const Universe& universe,
                                                            const Layout& layout);

}  // namespace meshplan
