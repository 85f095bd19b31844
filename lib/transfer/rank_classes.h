// The ranks of a mesh in classes that exchange nothing with one another, those that look alike
// once.
//
//     mesh dp 2 x tp 8 on units of 8, nothing between ranks that differ on tp
//     8 classes of 2 ranks, 0 8 and 1 9 to 7 15: all alike, each rank is in a unit of its own
//     on units of 12     0 8 to 3 11 share a unit, 4 12 to 7 15 do not: they look different
//
// Two classes look alike where their kinds are the same, global ids put their ranks into the same
// order, and units begin at the same ranks. So whatever one exchanges the other does too, on the
// same levels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mesh/mesh.h"
#include "tensor/state.h"

namespace meshplan {

// Classes of one kind whose ranks are in the same order: they differ at most in where units begin,
// so what their ranks hold and want is worked out once.
struct RankClass {
  std::vector<int64_t> indices;  // in the mesh, of the first class, by ascending global id
  // The ascending global ids of one class for each way in which units begin. First those that have
  // a unit of the fewest ranks, which as a rule share most over the fewest links.
  std::vector<std::vector<int64_t>> ids;
};

// `apart`: sub-axes on which ranks of one class do not differ. `kinds`: of every class, by its
// number on these sub-axes; empty: all of one kind. `level_ranks`: consecutive global ids of one
// unit of each level, inside out, the last of which holds every rank.
[[nodiscard]] std::vector<RankClass> list_rank_classes(const Mesh& mesh,
                                                       std::span<const int64_t> level_ranks,
                                                       const std::vector<SubAxis>& apart,
                                                       std::span<const int64_t> kinds);

}  // namespace meshplan
