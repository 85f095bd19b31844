// Where groups and copies of ranks stand relative to the cuts of units, by what differs.
//
//     units of 72, mesh dp 128 x tp 8      a tp group starts at a multiple of 8: 9 places within a unit
//
// Units cut consecutive global ids alike after as many ids as the outermost of them holds, so two
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

// One sum of multiples of the modes' strides (as many of each as its size) for every remainder that
// the sums have modulo `period`.
[[nodiscard]] std::vector<int64_t> distinct_places(std::span<const Mode> modes, int64_t period);
// All sums of multiples of the modes' strides, ascending.
[[nodiscard]] std::vector<int64_t> sorted_offsets(std::span<const Mode> modes);

// The modes along which ranks of a mesh differ on some atoms, and those of its other parts.
struct AtomModes {
  std::vector<Mode> atoms;
  std::vector<Mode> others;
};
// nullopt: an atom cuts a mode of its mesh dim's layout where it does not divide.
[[nodiscard]] std::optional<AtomModes> modes_of(const Mesh& mesh, std::span<const Atom> atoms);

// Whether positions i of the rank map stand for ids base + i. O(world) where ranks are listed.
[[nodiscard]] bool is_consecutive(const Universe& universe);
// The modes of the copies of a mesh.
[[nodiscard]] std::vector<Mode> copy_modes(const Mesh& mesh);
// The position in the rank map of every rank of copy 0, row-major.
[[nodiscard]] std::vector<int64_t> positions_of(const Mesh& mesh);

}  // namespace meshplan
