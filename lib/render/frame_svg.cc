#include "render/frame_svg.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/int_math.h"
#include "base/text.h"
#include "render/table.h"

namespace meshplan {
namespace {

constexpr int64_t cell_width = 64;
constexpr int64_t cell_height = 48;
constexpr int64_t cell_gap = 6;
constexpr int64_t outer_gap = 10;
constexpr int64_t header = 18;
constexpr int64_t label_character = 7;  // width of one, about
constexpr int64_t bottom = 16;          // the line that says what is left out
constexpr int64_t most_bend = 60;       // of an arrow, at its control point

// Of the longest of the labels.
int64_t text_width(const std::vector<std::string>& labels) {
  size_t longest = 0;
  for (const std::string& label : labels) longest = std::max(longest, display_width(label));
  return static_cast<int64_t>(longest) * label_character;
}

// Left of the first column: the rows' labels, and what its own, centred, has beyond its cell.
int64_t label_width(const Grid& grid) {
  const int64_t rows = text_width(grid.row_labels);
  const int64_t beyond = (text_width(grid.column_labels) - cell_width + 1) / 2;
  return std::max({int64_t{0}, rows == 0 ? 0 : rows + 6, beyond});
}

// Wide enough that the names of neighbouring columns do not touch.
int64_t column_pitch(const Grid& grid) {
  return std::max(cell_width, text_width(grid.column_labels)) + cell_gap;
}

std::string left_out_text(const Grid& grid) {
  if (grid.shown >= grid.ranks) return {};
  return with_commas(grid.ranks - grid.shown) + " of " + with_commas(grid.ranks) +
         " ranks are not shown";
}

int64_t row_top(const Grid& grid, size_t row) {
  int64_t y = header;
  for (size_t r = 0; r < row; ++r) y += cell_height + cell_gap;
  for (size_t r = 1; r <= row; ++r) y += grid.gap_before[r] ? outer_gap : 0;
  return y;
}

// Tenths of a pixel as a decimal, so that nothing depends on how a machine prints fractions.
std::string tenths(int64_t value) {
  return std::to_string(value / 10) + (value % 10 == 0 ? "" : "." + std::to_string(value % 10));
}

// Colours in steps of the golden angle: neighbours differ, the same everywhere.
std::string color_of(size_t shard) {
  return "hsl(" + std::to_string(static_cast<int64_t>(shard * 137 % 360)) + ",62%,72%)";
}

// Where an interval lies in `span` pixels, in tenths; a sliver stays visible.
std::pair<int64_t, int64_t> scaled(const Box& box, const std::vector<int64_t>& shape, int dim,
                                   int64_t span) {
  if (dim < 0) return {0, span * 10};
  const auto d = static_cast<size_t>(dim);
  const int64_t extent = std::max<int64_t>(shape[d], 1);
  const auto lo = static_cast<int64_t>(int128{box[d].lo} * span * 10 / extent);
  const auto hi = static_cast<int64_t>(int128{box[d].hi} * span * 10 / extent);
  return {lo, std::max<int64_t>(hi - lo, box[d].hi > box[d].lo ? 10 : 0)};
}

int64_t cell_left(const Grid& grid, size_t column) {
  return label_width(grid) + static_cast<int64_t>(column) * column_pitch(grid);
}

std::string cell_svg(const GridCell& cell, int64_t x, int64_t y, const std::vector<int64_t>& shape,
                     const ShownDims& shown) {
  const auto [top, height] = scaled(cell.box, shape, shown.rows, cell_height);
  const auto [begin, width] = scaled(cell.box, shape, shown.columns, cell_width);
  std::string out = "<rect class=\"cell\" x=\"" + std::to_string(x) + "\" y=\"" +
                    std::to_string(y) + "\" width=\"" + std::to_string(cell_width) +
                    "\" height=\"" + std::to_string(cell_height) + "\"/>";
  if (volume(cell.box) > 0) {
    const std::string place = "x=\"" + tenths(x * 10 + begin) + "\" y=\"" + tenths(y * 10 + top) +
                              "\" width=\"" + tenths(width) + "\" height=\"" + tenths(height) +
                              "\"";
    out += "<rect " + place + " fill=\"" + color_of(cell.shard) + "\"/>";
    if (cell.pending) out += "<rect " + place + " fill=\"url(#pending)\"/>";
  }
  return out + "<text class=\"rank\" x=\"" + std::to_string(x + 4) + "\" y=\"" +
         std::to_string(y + 13) + "\">" + std::to_string(cell.rank) + "</text>\n";
}

struct Point {
  int64_t x = 0;
  int64_t y = 0;
};

// The middle of every rank's cell.
std::map<int64_t, Point> middles(const PlacedFrame& frame) {
  std::map<int64_t, Point> found;
  for (size_t r = 0; r < frame.grid->rows.size(); ++r) {
    for (size_t c = 0; c < frame.grid->rows[r].size(); ++c)
      found[frame.grid->rows[r][c].rank] = {frame.x + cell_left(*frame.grid, c) + cell_width / 2,
                                            frame.y + row_top(*frame.grid, r) + cell_height / 2};
  }
  return found;
}

// An arc, so that arrows along one row or one column lie beside one another: it bends down, or to
// the right, by a tenth of its length.
std::string arc(const Point& from, const Point& to) {
  const int64_t dx = to.x - from.x;
  const int64_t dy = to.y - from.y;
  const int64_t length = std::abs(dx) + std::abs(dy);
  const int64_t sign = dx > 0 || (dx == 0 && dy < 0) ? 1 : -1;
  const int64_t bend = std::min(length / 5, most_bend) * sign;
  const int64_t x = (from.x + to.x) / 2 - bend * dy / std::max<int64_t>(length, 1);
  const int64_t y = (from.y + to.y) / 2 + bend * dx / std::max<int64_t>(length, 1);
  return "<path class=\"arrow\" d=\"M" + std::to_string(from.x) + " " + std::to_string(from.y) +
         "Q" + std::to_string(x) + " " + std::to_string(y) + " " + std::to_string(to.x) + " " +
         std::to_string(to.y) + "\"/>";
}

// Where senders stand: before the step, or, in the second phase of an exchange, after the first.
struct SenderPlaces {
  std::map<int64_t, Point> before;
  std::map<int64_t, Point> after;

  const Point* find(const Received& received) const {
    const auto& first = received.phase > 1 ? after : before;
    const auto& second = received.phase > 1 ? before : after;
    for (const auto* places : {&first, &second}) {
      const auto place = places->find(received.from);
      if (place != places->end()) return &place->second;
    }
    return nullptr;
  }
};

// From every sender of the rank that has a place, each once.
std::string arrows_svg(const StepSenders& senders, int64_t rank, const SenderPlaces& places) {
  const auto received = senders.into.find(rank);
  if (received == senders.into.end()) return {};
  std::string out;
  std::set<int64_t> drawn;
  for (const Received& each : received->second) {
    const Point* place = places.find(each);
    if (place != nullptr && drawn.insert(each.from).second)
      out += arc(*place, places.after.at(rank));
  }
  return out;
}

}  // namespace

FrameSize frame_size(const Grid& grid) {
  const auto columns = std::ssize(grid.column_labels);
  FrameSize size;
  size.width = label_width(grid) +
               std::max(columns * column_pitch(grid),
                        static_cast<int64_t>(display_width(left_out_text(grid))) * label_character);
  size.height = row_top(grid, grid.rows.size() - 1) + cell_height +
                (grid.shown < grid.ranks ? bottom : 0) + 4;
  return size;
}

ShownDims shown_dims(const PlannedRedistribution& r) {
  const size_t rank = r.request.tensor.shape.size();
  std::vector<bool> sharded(rank);
  const auto note = [&](const State& state) {
    for (size_t d = 0; d < rank; ++d) sharded[d] = sharded[d] || !state.shards[d].empty();
  };
  note(r.request.src);
  for (const Step& step : r.steps) note(step.state);
  std::vector<int> dims;
  for (size_t d = 0; d < rank; ++d) {
    if (sharded[d]) dims.push_back(static_cast<int>(d));
  }
  for (size_t d = 0; d < rank; ++d) {
    if (!sharded[d]) dims.push_back(static_cast<int>(d));
  }
  ShownDims shown;
  if (!dims.empty()) shown.rows = dims[0];
  if (dims.size() > 1) {
    shown.rows = std::min(dims[0], dims[1]);
    shown.columns = std::max(dims[0], dims[1]);
  }
  return shown;
}

std::string frame_svg(const Grid& grid, const std::vector<int64_t>& shape, const ShownDims& shown) {
  const int64_t left = label_width(grid);
  std::string out;
  for (size_t c = 0; c < grid.column_labels.size(); ++c) {
    const int64_t x = cell_left(grid, c) + cell_width / 2;
    out += "<text class=\"axis\" x=\"" + std::to_string(x) + "\" y=\"12\" text-anchor=\"middle\">" +
           escape_html(grid.column_labels[c]) + "</text>\n";
  }
  for (size_t r = 0; r < grid.rows.size(); ++r) {
    const int64_t y = row_top(grid, r);
    if (left > 0) {
      out += "<text class=\"axis\" x=\"0\" y=\"" + std::to_string(y + cell_height / 2 + 4) + "\">" +
             escape_html(grid.row_labels[r]) + "</text>\n";
    }
    for (size_t c = 0; c < grid.rows[r].size(); ++c)
      out += cell_svg(grid.rows[r][c], cell_left(grid, c), y, shape, shown);
  }
  if (grid.shown < grid.ranks) {
    out += "<text class=\"axis\" x=\"" + std::to_string(left) + "\" y=\"" +
           std::to_string(frame_size(grid).height - 4) + "\">" + left_out_text(grid) + "</text>\n";
  }
  return out;
}

std::string ranks_svg(const PlacedFrame& from, const PlacedFrame& to, const StepSenders* senders) {
  const SenderPlaces places = {middles(from), middles(to)};
  std::string out = "<g class=\"ranks\">\n";
  bool first = true;
  for (size_t r = 0; r < to.grid->rows.size(); ++r) {
    for (size_t c = 0; c < to.grid->rows[r].size(); ++c) {
      const GridCell& cell = to.grid->rows[r][c];
      const Point corner = {to.x + cell_left(*to.grid, c), to.y + row_top(*to.grid, r)};
      const std::string received = senders == nullptr ? "" : received_text(*senders, cell.rank);
      const std::string arrows = senders == nullptr ? "" : arrows_svg(*senders, cell.rank, places);
      out += "<g class=\"to" + std::string(first && !arrows.empty() ? " first" : "") +
             "\" data-rank=\"" + std::to_string(cell.rank) + "\" tabindex=\"0\"><title>rank " +
             std::to_string(cell.rank) + ": " +
             escape_html(cell.text + (received.empty() ? "" : "; " + received)) +
             "</title><rect class=\"hit\" x=\"" + std::to_string(corner.x) + "\" y=\"" +
             std::to_string(corner.y) + "\" width=\"" + std::to_string(cell_width) +
             "\" height=\"" + std::to_string(cell_height) + "\"/>" + arrows + "</g>\n";
      first = first && arrows.empty();
    }
  }
  return out + "</g>\n";
}

std::string frame_definitions() {
  return "<defs><pattern id=\"pending\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
         "<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#333\" stroke-opacity=\"0.45\" stroke-width=\"2\"/></pattern>"
         "<marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\">"
         "<path d=\"M0 0L8 4L0 8z\" fill=\"#c00\"/></marker>"
         "<marker id=\"tail\" viewBox=\"0 0 6 6\" refX=\"3\" refY=\"3\" markerWidth=\"4\" markerHeight=\"4\">"
         "<circle cx=\"3\" cy=\"3\" r=\"3\" fill=\"#c00\"/></marker></defs>\n"
         "<style>text{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#222}.axis{font-size:11px;fill:#555}"
         ".rank{font-size:11px}.title{font-size:14px;font-weight:bold}.state{font-size:12px}.step{font-size:12px;fill:#0b57a4}"
         ".cell{fill:#fff;stroke:#999}.round{stroke:#5b7ea6}.hit{fill:#fff;fill-opacity:0}"
         ".arrow{display:none;fill:none;stroke:#c00;stroke-width:1.5;marker-start:url(#tail);marker-end:url(#head);pointer-events:none}</style>\n";
}

}  // namespace meshplan
