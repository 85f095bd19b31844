// Tables of text, printed for terminals, for Markdown and for HTML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshplan {

struct TableColumn {
  std::string name;
  bool right = false;  // right-aligned, for numbers
  bool prose = false;  // may be cut where the width is limited; at most one column, the last
  // may be left out where the width does not hold it: the prose first, then these from the right
  bool spare = false;
};

struct TableRow {
  std::vector<std::string> cells;
  std::string heading;  // instead of cells: a line of its own between rows
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<TableRow> rows;
};

// Columns on a terminal: one per character, and one per byte that is not UTF-8.
[[nodiscard]] size_t display_width(std::string_view text);
// At most `width` columns of the text, its end replaced by "..." (or one character for it) where it
// is longer.
[[nodiscard]] std::string cut_to(std::string_view text, size_t width, bool unicode);

struct TableStyle {
  int64_t width = 0;    // 0: as wide as it is
  bool unicode = true;  // else ASCII only
  bool color = false;
  size_t indent = 0;  // of rows, not of headings
};
// Every line ends in a newline and none in a blank. Columns that are left out are named in a last
// line.
[[nodiscard]] std::string table_text(const Table& table, const TableStyle& style);
// A GitHub table; headings become rows in bold.
[[nodiscard]] std::string table_markdown(const Table& table);
// A <table> element.
[[nodiscard]] std::string table_html(const Table& table);

[[nodiscard]] std::string escape_markdown(std::string_view text);
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace meshplan
