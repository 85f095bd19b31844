#include "render/mesh_picture.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "mesh/build.h"
#include "mesh/coordinates.h"

namespace meshplan {
namespace {

struct Axis {
  std::string name;
  int64_t size;
  Layout layout;
};

// Text on the screen and how wide it is there: colours take no columns.
struct Span {
  std::string text;
  size_t columns = 0;
};

Span plain(const std::string& text) { return {text, text.size()}; }

Span pad_left(Span span, size_t columns) {
  if (span.columns < columns)
    span = {std::string(columns - span.columns, ' ') + span.text, columns};
  return span;
}

Span pad_right(Span span, size_t columns) {
  if (span.columns < columns)
    span = {span.text + std::string(columns - span.columns, ' '), columns};
  return span;
}

void append(Span& line, const Span& span) {
  line.text += span.text;
  line.columns += span.columns;
}

// The colours of a terminal that read on a dark and on a light ground, the usual ones before the
// bright ones.
constexpr std::array<int, 12> palette{32, 34, 35, 36, 31, 33, 92, 94, 95, 96, 91, 93};

Span tinted(const std::string& text, int64_t group, bool color) {
  if (!color) return plain(text);
  const int code = palette[group % std::ssize(palette)];
  return {"\x1b[" + std::to_string(code) + "m" + text + "\x1b[0m", text.size()};
}

std::vector<Axis> axes_of(const Mesh& mesh) {
  std::vector<Axis> axes;
  if (mesh_copies(mesh) > 1) axes.push_back({"copy", mesh_copies(mesh), copies_layout(mesh)});
  for (const MeshDim& dim : mesh.dims) {
    if (dim.size > 1) axes.push_back({escaped(dim.name), dim.size, dim.layout});
  }
  return axes;
}

class Picture {
 public:
  Picture(const Mesh& mesh, const PictureOptions& options)
      : universe_(*mesh.universe), options_(options), axes_(axes_of(mesh)) {
    for (const MeshDim& dim : mesh.dims) {
      if (dim.size == 1) continue;
      const auto copies = complement(dim.layout, universe_.world);
      MESHPLAN_CHECK(copies.ok(),
                     "the communicators of a dim tile the universe: " + copies.error().message);
      groups_.push_back(*copies);
    }
    const size_t outer = axes_.size() > 2 ? axes_.size() - 2 : 0;
    for (size_t i = 0; i < outer; ++i) panel_count_ *= axes_[i].size;
    if (axes_.size() > 1) row_axis_ = axes_[axes_.size() - 2];
    if (!axes_.empty()) column_axis_ = axes_.back();
    panels_ = std::min(panel_count_, options.panels);
    rows_ = std::min(row_axis_.size, options.rows);
    columns_ = std::min(column_axis_.size, options.columns);
    label_width_ = std::max(heading(row_axis_, rows_ - 1).size(), column_axis_.name.size());
    measure_cells();
    const int64_t room = (options.width - 2 - static_cast<int64_t>(label_width_)) /
                         static_cast<int64_t>(cell_width_ + 2);
    columns_ = std::clamp<int64_t>(room, 1, columns_);
  }

  std::string draw() const {
    const size_t panel_width = label_width_ + static_cast<size_t>(columns_) * (cell_width_ + 2);
    const int64_t abreast =
        std::max<int64_t>(1, (options_.width - 2 + 3) / static_cast<int64_t>(panel_width + 3));
    std::string text;
    for (int64_t first = 0; first < panels_; first += abreast) {
      const int64_t last = std::min(panels_, first + abreast);
      std::vector<Span> lines(static_cast<size_t>(rows_) + (panel_count_ > 1 ? 2 : 1));
      for (int64_t panel = first; panel < last; ++panel) {
        const std::vector<Span> drawn = draw_panel(panel);
        for (size_t i = 0; i < lines.size(); ++i) {
          if (panel > first) append(lines[i], plain("   "));
          append(lines[i], panel + 1 < last ? pad_right(drawn[i], panel_width) : drawn[i]);
        }
      }
      for (const Span& line : lines) text += "  " + line.text + "\n";
    }
    const int64_t drawn = panels_ * rows_ * columns_;
    if (drawn < universe_.world) {
      text += "  ... " + with_commas(universe_.world - drawn) + " of " +
              with_commas(universe_.world) + " ranks are not shown\n";
    }
    return text;
  }

 private:
  static std::string heading(const Axis& axis, int64_t coordinate) {
    return axis.name.empty() ? "" : axis.name + " " + std::to_string(coordinate);
  }

  int64_t position(int64_t panel, int64_t row, int64_t column) const {
    int64_t at = offset_at(row_axis_.layout, row) + offset_at(column_axis_.layout, column);
    for (size_t i = axes_.size() > 2 ? axes_.size() - 2 : 0; i-- > 0;) {
      at += offset_at(axes_[i].layout, panel % axes_[i].size);
      panel /= axes_[i].size;
    }
    return at;
  }

  template <class Visit>
  void for_each_cell(Visit visit) const {
    for (int64_t panel = 0; panel < panels_; ++panel) {
      for (int64_t row = 0; row < rows_; ++row) {
        for (int64_t column = 0; column < columns_; ++column) visit(position(panel, row, column));
      }
    }
  }

  void measure_cells() {
    letter_widths_.assign(groups_.size(), 1);
    for_each_cell([&](int64_t at) {
      rank_width_ = std::max(rank_width_, std::to_string(rank_at(universe_, at)).size());
      for (size_t i = 0; i < groups_.size(); ++i) {
        letter_widths_[i] =
            std::max(letter_widths_[i], group_letters(index_in(groups_[i], at)).size());
      }
    });
    apart_ = std::any_of(letter_widths_.begin(), letter_widths_.end(),
                         [](size_t width) { return width > 1; });
    cell_width_ = rank_width_ + (groups_.empty() ? 0 : 1);
    for (const size_t width : letter_widths_) cell_width_ += width;
    if (apart_) cell_width_ += groups_.size() - 1;
  }

  Span cell(int64_t at) const {
    Span span = pad_left(plain(std::to_string(rank_at(universe_, at))), rank_width_);
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (i == 0) append(span, plain(" "));
      if (i > 0 && apart_) append(span, plain("."));
      const int64_t group = index_in(groups_[i], at);
      append(span, tinted(group_letters(group), group, options_.color));
    }
    return span;
  }

  std::vector<Span> draw_panel(int64_t panel) const {
    std::vector<Span> lines;
    if (panel_count_ > 1) {
      std::string title;
      int64_t rest = panel;
      for (size_t i = axes_.size() - 2; i-- > 0;) {
        title = heading(axes_[i], rest % axes_[i].size) + (title.empty() ? "" : ", ") + title;
        rest /= axes_[i].size;
      }
      lines.push_back(plain(title));
    }
    Span head = pad_left(plain(column_axis_.name), label_width_);
    for (int64_t column = 0; column < columns_; ++column) {
      append(head, plain("  "));
      append(head, pad_right(pad_left(plain(std::to_string(column)), rank_width_),
                             column + 1 < columns_ ? cell_width_ : 0));
    }
    lines.push_back(head);
    for (int64_t row = 0; row < rows_; ++row) {
      Span line = pad_right(plain(heading(row_axis_, row)), label_width_);
      for (int64_t column = 0; column < columns_; ++column) {
        append(line, plain("  "));
        append(line, pad_right(cell(position(panel, row, column)),
                               column + 1 < columns_ ? cell_width_ : 0));
      }
      lines.push_back(line);
    }
    return lines;
  }

  const Universe& universe_;
  PictureOptions options_;
  std::vector<Axis> axes_;
  Axis row_axis_{"", 1, {}};
  Axis column_axis_{"", 1, {}};
  std::vector<Layout> groups_;  // per dim of size > 1: the base positions of its communicators
  std::vector<size_t> letter_widths_;
  bool apart_ = false;  // letters of different dims need a point between them
  int64_t panel_count_ = 1;
  int64_t panels_ = 1;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  size_t label_width_ = 0;
  size_t rank_width_ = 1;
  size_t cell_width_ = 1;
};

}  // namespace

std::string group_letters(int64_t index) {
  static constexpr std::string_view alphabet =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr auto count = std::ssize(alphabet);
  std::string letters;
  for (++index; index > 0; index = (index - 1) / count)
    letters.insert(letters.begin(), alphabet[(index - 1) % count]);
  return letters;
}

std::string mesh_picture(const Mesh& mesh, const PictureOptions& options) {
  return Picture(mesh, options).draw();
}

}  // namespace meshplan
