// The ranks of a mesh in classes that exchange nothing with one another, those that look alike once.
//
//     mesh dp 2 x tp 8 on units of 8, nothing between ranks that differ on tp
//     8 classes of 2 ranks, all alike: each one's ranks are in units of their own
//
// Two classes look alike where their kinds are the same, global ids put their ranks into the same
// order, and units begin at the same ranks. So whatever one exchanges the other does too, on the
// same levels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "mesh/mesh.h"
#include "tensor/state.h"

namespace meshplan {

struct RankClass {
  std::vector<int64_t> indices;           // in the mesh, of one class, by ascending global id
  // Of the classes that differ in where units begin only: those first that have a unit of the fewest
  // ranks, which as a rule share most over the fewest links.
  std::vector<std::vector<int64_t>> ids;
};

// The coordinates of ranks on a list of atoms as one number, the first atom most major.
class NumberOn {
 public:
  NumberOn(std::span<const Atom> atoms, std::span<const int64_t> mesh_shape);
  // Of the rank with this row-major index in the mesh.
  [[nodiscard]] int64_t operator()(int64_t index) const {
    int64_t number = 0;
    for (const Part& part : parts_)
      number = number * part.size + floor_mod(floor_div(index, part.below), part.size);
    return number;
  }

 private:
  struct Part {
    int64_t below;  // ranks of the mesh that differ further inside
    int64_t size;
  };
  std::vector<Part> parts_;
};

// `apart`: atoms on which ranks of one class do not differ. `kinds`: of every class, by its number
// on these atoms; empty: all of one kind. `level_ranks`: consecutive global ids of one unit of each
// level, inside out, the last of which holds every rank.
[[nodiscard]] std::vector<RankClass> list_rank_classes(const Mesh& mesh,
                                                       std::span<const int64_t> level_ranks,
                                                       const std::vector<Atom>& apart,
                                                       std::span<const int64_t> kinds);

}  // namespace meshplan
