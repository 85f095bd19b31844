// Where groups and copies of ranks begin relative to the units of a level, each place once.
//
//     units of 72, mesh dp 128 x tp 8      a tp group begins at a multiple of 8: 9 places in a unit
//
// Units cut consecutive global ids alike after as many ids as the outermost of them holds. So two
// groups with the same strides look alike where their first members differ by a multiple of that.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/layout.h"
#include "mesh/mesh.h"
#include "tensor/state.h"

namespace meshplan {

// A place of the modes is a sum of multiples of their strides, each below the mode's size. One
// place for every remainder that places have modulo `period`.
//
//     modes 4:6, period 9     places 0 6 12 18, remainders 0 6 3 0: 0 6 12
[[nodiscard]] std::vector<int64_t> distinct_places(std::span<const Mode> modes, int64_t period);
// All places of the modes, ascending.
[[nodiscard]] std::vector<int64_t> sorted_offsets(std::span<const Mode> modes);

// The modes along which ranks of a mesh differ on some sub-axes, and those of its other factors.
//
//     mesh b 8 with layout 8:2, sub-axis b:(2)2     sub-axes 2:4, others 2:8 and 2:2
struct SubAxisModes {
  std::vector<Mode> sub_axes;
  std::vector<Mode> others;
};
// nullopt: a sub-axis cuts a mode of its mesh dim's layout where it does not divide.
[[nodiscard]] std::optional<SubAxisModes> modes_of(const Mesh& mesh,
                                                   std::span<const SubAxis> sub_axes);

// Whether positions i of the rank map stand for ids base + i. O(world) where ranks are listed.
[[nodiscard]] bool is_consecutive(const Universe& universe);
// The modes of the copies of a mesh.
[[nodiscard]] std::vector<Mode> copy_modes(const Mesh& mesh);
// The position in the rank map of every rank of copy 0, row-major.
[[nodiscard]] std::vector<int64_t> positions_of(const Mesh& mesh);

// A rank of copy 0 of a mesh: its global id, and its row-major index in the mesh.
struct MeshRank {
  int64_t id = 0;
  int64_t index = 0;
  auto operator<=>(const MeshRank&) const = default;
};
// All of them, ascending by id.
[[nodiscard]] std::vector<MeshRank> ranks_by_id(const Mesh& mesh);

}  // namespace meshplan
