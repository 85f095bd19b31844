// The mesh as a grid with the box of each rank, drawn as text, SVG and HTML.
//
//     mesh dp 2 x tp 4      columns: coordinates on the last mesh dim      rows: all others
//
// Any number of mesh dims fits. Of a large mesh the corner at coordinate 0 is shown, and how much
// is not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "tensor/box.h"

namespace meshplan {

struct GridCell {
  int64_t rank = 0;  // global id, in the copy that holds rank map entry 0
  Box box;
  size_t shard = 0;  // equal boxes have equal numbers, counted in order of appearance
  bool pending = false;
  // "0:2048, :", "P 0:4096" with a pending reduction, "empty"; ":" is a whole tensor dim, "all" a
  // scalar
  std::string text;
};

struct Grid {
  std::vector<std::string> row_labels;  // "dp 0, cp 1"; one empty label for a mesh of one dim
  std::vector<std::string> column_labels;
  std::vector<std::vector<GridCell>> rows;
  std::vector<bool> gap_before;  // a row that begins a new coordinate on an outer mesh dim
  int64_t ranks = 0;             // of the mesh
  int64_t shown = 0;
};

constexpr int64_t grid_side = 8;  // rows and columns shown

[[nodiscard]] Grid make_grid(const Mesh& mesh, const State& state,
                             const std::vector<int64_t>& shape);

// Aligned rows, a last line where ranks are left out.
[[nodiscard]] std::string grid_text(const Grid& grid);

// A state that a redistribution passes through.
struct Frame {
  const Mesh* mesh = nullptr;
  const State* state = nullptr;
  const Step* step = nullptr;  // that led here; null for the source
};
// The source, then the state after each step. The plan must outlive them.
[[nodiscard]] std::vector<Frame> frames_of(const Plan& plan,
                                           const PlannedRedistribution& redistribution);
// "P(sum)R", with the mesh's name where it is not the only one.
[[nodiscard]] std::string frame_title(const Plan& plan, const Frame& frame);
// "all_reduce sum on tp, 8 ranks: 7 B, 10.0 us"
[[nodiscard]] std::string arrow_text(const Plan& plan, const PlannedRedistribution& redistribution,
                                     const Step& step, bool costs);

}  // namespace meshplan
