// The communicators of a universe: one entry per (layout, group options), whoever asks for it under whatever name.
//
//     root   dp 2 x tp 4        dp 2:4   4 communicators      tp 4:1   2 communicators
//     view   root.tp unflattened into tp_o 2, tp_i 2, then flattened again: 4:1, so it shares the 2 communicators of root.tp
//
// What it is not: a list of ranks. `group_ranks` lists them on request.
#pragma once

#include <string>
#include <vector>

#include "mesh/mesh_table.h"

namespace meshplan {

// A dim of a mesh, or a flatten declared on it without a mesh of its own.
struct GroupUser {
  std::string mesh;
  std::string name;
  std::vector<std::string> dims;  // {name}, or the dims that the flatten is made of
  bool operator==(const GroupUser&) const = default;
};

struct Group {
  Layout layout;  // canonical
  std::string options;
  int64_t size = 1;              // ranks of one communicator
  int64_t count = 1;             // communicators: size * count = world
  std::vector<GroupUser> users;  // in order of declaration, never empty
};

// In order of first use. Law: no two entries have the same layout and options; the communicators of each entry partition the world.
[[nodiscard]] std::vector<Group> group_table(const MeshTable& table);

// The entry of a dim of a mesh; MESHPLAN_CHECKs that it exists.
[[nodiscard]] const Group& group_of(const std::vector<Group>& groups, const MeshDim& dim);

// What it takes to set the groups up. Groups of one rank need no communicator.
struct GroupCounts {
  int64_t communicators = 0;  // that exist in the end, over all ranks
  int64_t splits = 0;         // collective split calls on the world communicator, each of which makes all communicators of one entry
  int64_t members = 0;        // memberships: the sum of the communicators' sizes
  bool operator==(const GroupCounts&) const = default;
};
// "world_group": "init": the world communicator exists first, a group that is the whole world without options is that one, all others are
// split from it.
[[nodiscard]] GroupCounts counts_with_world_group(const MeshTable& table);
// "world_group": "skip": every communicator is created on its own, the world's only where a group needs it.
[[nodiscard]] GroupCounts counts_without_world_group(const MeshTable& table);

// Global ranks of every communicator of the layout, in communicator order, lists by ascending base position. O(world).
[[nodiscard]] std::vector<std::vector<int64_t>> group_ranks(const Universe& universe, const Layout& layout);

}  // namespace meshplan
