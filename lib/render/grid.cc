#include "render/grid.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/utf8.h"
#include "plan/step_mesh.h"
#include "render/plan_view.h"

namespace meshplan {
namespace {

// Row-major coordinates of row `row` over all mesh dims but the last.
std::vector<int64_t> row_coordinates(const std::vector<int64_t>& shape, int64_t row) {
  std::vector<int64_t> at(shape.size());
  for (size_t i = shape.size() - 1; i-- > 0;) {
    at[i] = row % shape[i];
    row /= shape[i];
  }
  return at;
}

std::string row_label(const Mesh& mesh, const std::vector<int64_t>& at) {
  std::vector<std::string> parts;
  for (size_t i = 0; i + 1 < mesh.dims.size(); ++i)
    parts.push_back(one_line(mesh.dims[i].name) + " " + std::to_string(at[i]));
  return join(parts, ", ");
}

std::string cell_text(const Box& box, const std::vector<int64_t>& shape, bool pending) {
  const std::string mark = pending ? "P " : "";
  if (box.empty()) return mark + "all";
  if (volume(box) == 0) return "empty";
  std::vector<std::string> parts;
  for (size_t d = 0; d < box.size(); ++d) {
    const bool whole = box[d].lo == 0 && box[d].hi == shape[d];
    parts.push_back(whole ? ":" : std::to_string(box[d].lo) + ":" + std::to_string(box[d].hi));
  }
  return mark + join(parts, ", ");
}

}  // namespace

Grid make_grid(const Mesh& mesh, const State& state, const std::vector<int64_t>& shape) {
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  Grid grid;
  grid.ranks = mesh_size(mesh);
  if (sizes.empty()) {
    grid.row_labels = grid.column_labels = {""};
    grid.gap_before = {false};
    const Box box = box_of(state, shape, sizes, {});
    grid.rows = {{{rank_at(*mesh.universe, 0), box, 0, false, cell_text(box, shape, false)}}};
    grid.shown = 1;
    return grid;
  }
  const int64_t columns = sizes.back();
  const int64_t rows = grid.ranks / columns;
  for (int64_t c = 0; c < std::min(columns, grid_side); ++c)
    grid.column_labels.push_back(one_line(mesh.dims.back().name) + " " + std::to_string(c));
  std::map<std::vector<std::pair<int64_t, int64_t>>, size_t> shards;
  for (int64_t r = 0; r < std::min(rows, grid_side); ++r) {
    std::vector<int64_t> at = row_coordinates(sizes, r);
    grid.row_labels.push_back(row_label(mesh, at));
    // The row dim before the columns starts anew: an outer coordinate has changed.
    grid.gap_before.push_back(r > 0 && sizes.size() > 2 && at[sizes.size() - 2] == 0);
    std::vector<GridCell>& cells = grid.rows.emplace_back();
    for (int64_t c = 0; c < std::min(columns, grid_side); ++c) {
      at.back() = c;
      GridCell cell;
      cell.rank = rank_at(*mesh.universe, position_of(mesh, 0, r * columns + c));
      cell.box = box_of(state, shape, sizes, at);
      std::vector<std::pair<int64_t, int64_t>> key;
      for (const Interval& interval : cell.box) key.emplace_back(interval.lo, interval.hi);
      cell.shard = shards.try_emplace(std::move(key), shards.size()).first->second;
      cell.pending = !state.partial.empty();
      cell.text = cell_text(cell.box, shape, cell.pending);
      cells.push_back(std::move(cell));
      ++grid.shown;
    }
  }
  return grid;
}

std::string grid_text(const Grid& grid) {
  size_t label = 0;
  for (const std::string& each : grid.row_labels) label = std::max(label, display_width(each));
  std::vector<size_t> widths;
  for (size_t c = 0; c < grid.column_labels.size(); ++c) {
    size_t width = display_width(grid.column_labels[c]);
    for (const auto& row : grid.rows) width = std::max(width, row[c].text.size());
    widths.push_back(width);
  }
  std::string out;
  const auto line = [&](const std::string& head, const std::vector<std::string>& cells) {
    std::string text = head + std::string(label - std::min(label, display_width(head)), ' ');
    for (size_t c = 0; c < cells.size(); ++c)
      text += "  " + cells[c] +
              std::string(widths[c] - std::min(widths[c], display_width(cells[c])), ' ');
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line("", grid.column_labels);
  for (size_t r = 0; r < grid.rows.size(); ++r) {
    if (grid.gap_before[r]) out += "\n";
    std::vector<std::string> cells;
    for (const GridCell& cell : grid.rows[r]) cells.push_back(cell.text);
    line(grid.row_labels[r], cells);
  }
  if (grid.shown < grid.ranks)
    out += "(" + with_commas(grid.ranks - grid.shown) + " of " + with_commas(grid.ranks) +
           " ranks are not shown)\n";
  return out;
}

std::vector<Frame> frames_of(const Plan& plan, const PlannedRedistribution& r) {
  const Mesh& src = plan.meshes.meshes[r.request.src_mesh];
  std::vector<Frame> frames = {{&src, &r.request.src, nullptr}};
  for (const Step& step : r.steps)
    frames.push_back({&mesh_after(plan.meshes, r.request, step), &step.state, &step});
  return frames;
}

std::string frame_title(const Plan& plan, const Frame& frame) {
  return to_text(*frame.state, mesh_shape(*frame.mesh)) +
         (plan.meshes.meshes.size() > 1 ? " on " + frame.mesh->name : "");
}

std::string arrow_text(const Plan& plan, const PlannedRedistribution& r, const Step& step,
                       bool costs) {
  const std::string arithmetic = step_arithmetic(step);
  std::string text = step_name(step) + (arithmetic.empty() ? "" : " " + arithmetic);
  if (is_local(step.op)) return text + ", local";
  text += " on " + step.group + ", " + with_commas(step_ranks(plan, r, step)) +
          " ranks: " + human_bytes(step.wire_bytes);
  return costs ? text + ", " + human_ns(ns_of_ps(step.predicted_ps)) : text;
}

}  // namespace meshplan
