#include "render/table.h"

#include <algorithm>

#include "base/utf8.h"

namespace meshplan {
namespace {

constexpr size_t least_prose = 20;  // columns; below that there is none

// Which columns there is room for; the width of the prose becomes what is left for it.
std::vector<bool> fit(const Table& table, const TableStyle& style, std::vector<size_t>& widths) {
  const size_t n = table.columns.size();
  std::vector<bool> shown(n, true);
  if (style.width <= 0 || n == 0) return shown;
  const auto all = static_cast<size_t>(style.width);
  // The columns shown but for `without`, and two blanks between them.
  const auto taken = [&](size_t without) {
    size_t sum = style.indent;
    for (size_t c = 0; c < n; ++c) sum += shown[c] && c != without ? widths[c] + 2 : 0;
    return sum;
  };
  if (table.columns.back().prose) {
    const size_t before = taken(n - 1);
    const size_t room = all > before ? all - before : 0;
    const size_t least = std::min(widths.back(), least_prose);
    shown.back() = room >= least;
    widths.back() = std::min(widths.back(), room);
  }
  for (size_t c = n; c-- > 0 && taken(n) > all + 2;) {
    if (table.columns[c].spare) shown[c] = false;
  }
  return shown;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

size_t display_width(std::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), continues));
}

std::string cut_to(std::string_view text, size_t width, bool unicode) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view mark = unicode ? "\xe2\x80\xa6" : "...";
  const size_t kept = width > display_width(mark) ? width - display_width(mark) : 0;
  size_t end = 0;
  for (size_t shown = 0; end < text.size(); ++end) {
    if (!continues(text[end]) && shown++ == kept) break;
  }
  while (end > 0 && text[end - 1] == ' ') --end;
  return std::string(text.substr(0, end)) + std::string(mark);
}

std::string table_text(const Table& table, const TableStyle& style) {
  const size_t n = table.columns.size();
  std::vector<size_t> widths(n);
  for (size_t c = 0; c < n; ++c) widths[c] = display_width(table.columns[c].name);
  for (const TableRow& row : table.rows) {
    for (size_t c = 0; c < row.cells.size(); ++c)
      widths[c] = std::max(widths[c], display_width(one_line(row.cells[c])));
  }
  const std::vector<bool> shown = fit(table, style, widths);
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells, const char* color) {
    std::string text(style.indent, ' ');
    for (size_t c = 0; c < cells.size(); ++c) {
      if (!shown[c]) continue;
      const std::string whole = one_line(cells[c]);
      const std::string cell =
          table.columns[c].prose ? cut_to(whole, widths[c], style.unicode) : whole;
      const std::string blanks(widths[c] - std::min(widths[c], display_width(cell)), ' ');
      if (c > 0) text += "  ";
      text += table.columns[c].right ? blanks + cell : cell + blanks;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += style.color && color != nullptr ? std::string(color) + text + "\x1b[0m\n" : text + "\n";
  };
  std::vector<std::string> names;
  for (const TableColumn& column : table.columns) names.push_back(column.name);
  line(names, "\x1b[2m");
  for (const TableRow& row : table.rows) {
    if (row.heading.empty()) {
      line(row.cells, nullptr);
      continue;
    }
    const std::string whole = one_line(row.heading);
    const std::string text =
        style.width > 0 ? cut_to(whole, static_cast<size_t>(style.width), style.unicode) : whole;
    out += style.color ? "\x1b[1m" + text + "\x1b[0m\n" : text + "\n";
  }
  std::string missing;
  for (size_t c = 0; c < n; ++c) {
    if (!shown[c]) missing += (missing.empty() ? "" : ", ") + table.columns[c].name;
  }
  return missing.empty() ? out : out + "(no room for " + missing + ")\n";
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (c == '<') {
      out += "&lt;";
      continue;
    }
    if (std::string_view("|*_`\\[]#~@").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string table_markdown(const Table& table) {
  std::string out = "|";
  for (const TableColumn& column : table.columns) out += " " + escape_markdown(column.name) + " |";
  out += "\n|";
  for (const TableColumn& column : table.columns) out += column.right ? " ---: |" : " --- |";
  out += "\n";
  for (const TableRow& row : table.rows) {
    out += "|";
    if (!row.heading.empty()) {
      out += " **" + escape_markdown(row.heading) + "** |";
      for (size_t c = 1; c < table.columns.size(); ++c) out += " |";
    }
    for (const std::string& cell : row.cells) out += " " + escape_markdown(cell) + " |";
    out += "\n";
  }
  return out;
}

std::string escape_html(std::string_view given) {
  const std::string text = one_line(given);  // XML has no control characters and no stray bytes
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const char c = text[at];
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += text.substr(at, length);
    }
    at += length;
  }
  return out;
}

std::string table_html(const Table& table) {
  std::string out = "<table>\n<tr>";
  for (const TableColumn& column : table.columns) {
    out += std::string("<th") + (column.right ? " class=\"n\"" : "") + ">" +
           escape_html(column.name) + "</th>";
  }
  out += "</tr>\n";
  for (const TableRow& row : table.rows) {
    out += "<tr>";
    if (!row.heading.empty()) {
      out += "<th colspan=\"" + std::to_string(table.columns.size()) + "\">" +
             escape_html(row.heading) + "</th>";
    }
    for (size_t c = 0; c < row.cells.size(); ++c) {
      out += std::string("<td") + (table.columns[c].right ? " class=\"n\"" : "") + ">" +
             escape_html(row.cells[c]) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

}  // namespace meshplan
