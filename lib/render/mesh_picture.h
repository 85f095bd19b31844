// The picture of a mesh: grids of ranks, one panel for each coordinate of the dims outside the last
// two.
//
//     pp 0                               pp 1
//       tp   0      1      2      3        tp   0      1      2      3
//     dp 0   0 aaa  1 bba  2 cca  3 dda  dp 0   8 aca ...
//     dp 1   4 eab  5 fbb ...      rank, then the letter of its group on pp, dp, tp
//
// Dims of size 1 are left out; a mesh with copies shows them as an outermost axis "copy".
#pragma once

#include <cstdint>
#include <string>

#include "mesh/mesh.h"

namespace meshplan {

struct PictureOptions {
  bool color = false;   // ANSI colours, one a group
  int64_t width = 100;  // columns to keep within, where one cell fits
  int64_t rows = 8;     // of one panel, at most
  int64_t columns = 16;
  int64_t panels = 8;
};

// Lines that each end in a newline. What exceeds the options is left out and counted on the last
// line. Costs no more for a larger world.
[[nodiscard]] std::string mesh_picture(const Mesh& mesh, const PictureOptions& options);

// a, b, ..., z, A, ..., Z, aa, ab, ...: the name of the group number `index` of a dim.
[[nodiscard]] std::string group_letters(int64_t index);

}  // namespace meshplan
