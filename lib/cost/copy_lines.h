// How far copies of a state reach: a line is the ranks of a mesh that differ on one mesh dim alone.
//
//     hosts of 8, dp 4 x tp 4, RS(0)     dp holds copies, tp none
//                                        a line of dp has 4 ranks, in 2 hosts
//
// An all_gather over mesh dims of which one holds copies takes whole lines of that dim into each
// group. The ranks of a group have different parts of what it gathers, so every unit that the group
// reaches, and every rank, lacks all parts but its own.
#pragma once

#include <cstdint>
#include <vector>

#include "mesh/mesh.h"
#include "tensor/state.h"
#include "transfer/level_units.h"

namespace meshplan {

// Of one mesh dim: the units inside each level that a line meets, by level, the least over lines;
// of level 0 its ranks.
using CopyLines = std::vector<int64_t>;

// Of every mesh dim that the state does not cut wholly.
[[nodiscard]] std::vector<CopyLines> copy_lines(const Mesh& mesh, const State& state,
                                                const LevelUnits& units);

}  // namespace meshplan
