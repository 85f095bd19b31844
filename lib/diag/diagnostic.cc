#include "diag/diagnostic.h"

#include <algorithm>
#include <tuple>

#include "base/enum_names.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

constexpr size_t window = 110;      // characters shown of a long line
constexpr size_t window_lead = 40;  // characters before the place

// Appends one character of an excerpt. Control characters become a space so that the carets line
// up; invalid bytes become U+FFFD.
void append_shown(std::string& out, std::string_view text, size_t at, size_t length) {
  if (length == 0) {
    out += "\xEF\xBF\xBD";
  } else if (is_control(text, at, length)) {
    out += ' ';
  } else {
    out.append(text.substr(at, length));
  }
}

// Where the line of byte `begin` ends, asked of bytes of that line: a carriage return before the
// newline belongs to the end, unless the place lies behind it.
struct LineEnd {
  std::string_view text;
  size_t begin;
  [[nodiscard]] bool at(size_t byte) const {
    if (byte == text.size() || text[byte] == '\n') return true;
    const bool last = byte + 1 == text.size() || text[byte + 1] == '\n';
    return text[byte] == '\r' && last && begin <= byte;
  }
};

size_t next_character(std::string_view text, size_t at) {
  return at + std::max<size_t>(1, utf8_length(text, at));
}

// So many characters before `at`, where one begins.
size_t characters_back(std::string_view text, size_t at, size_t count) {
  for (; count > 0; --count) {
    size_t length = 1;
    while (length < 4 && length < at && utf8_length(text, at - length) != length) ++length;
    at -= utf8_length(text, at - length) == length ? length : 1;
  }
  return at;
}

bool begins_character(std::string_view text, size_t at) {
  return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

// `line`: where the line of the place begins. Of long lines as much is looked at as is shown.
void add_excerpt(Place& place, std::string_view text, size_t line, size_t begin, size_t end) {
  const LineEnd line_end{text, begin};
  const auto column = static_cast<size_t>(place.column - 1);
  size_t shown = 0;
  for (size_t at = line; shown <= window && !line_end.at(at); ++shown)
    at = next_character(text, at);
  const size_t from = column > window_lead && shown > window ? column - window_lead : 0;
  size_t at = line;
  if (begins_character(text, begin)) {
    at = from > 0 ? characters_back(text, begin, window_lead) : line;
  } else {
    for (size_t character = 0; character < from && !line_end.at(at); ++character)
      at = next_character(text, at);
  }
  for (shown = 0; shown < window && !line_end.at(at); ++shown) {
    const size_t length = utf8_length(text, at);
    append_shown(place.excerpt, text, at, length);
    at += std::max<size_t>(1, length);
  }
  if (!line_end.at(at)) place.excerpt += "...";
  if (from > 0) place.excerpt = "..." + place.excerpt;
  place.caret = static_cast<int64_t>(column - from + (from > 0 ? 3 : 0));
  const std::string_view up_to_end = text.substr(0, end);
  size_t width = 0;
  for (at = begin; at < end && width < window && !line_end.at(at); ++width)
    at = next_character(up_to_end, at);
  place.caret_width = static_cast<int64_t>(std::clamp<size_t>(width, 1, window - (column - from)));
}

}  // namespace

const char* to_text(Severity severity) {
  static constexpr EnumNames<Severity, 3> names{{"error", "warning", "note"}};
  return names[severity];
}

Place whole_file(std::string file) {
  Place place;
  place.file = std::move(file);
  return place;
}

Place locate(std::string_view text, std::string file, size_t begin, size_t end, std::string pointer,
             LastPlace* last) {
  begin = std::min(begin, text.size());
  end = std::clamp(end, begin, text.size());
  Place place;
  place.file = std::move(file);
  place.pointer = std::move(pointer);
  place.begin = static_cast<int64_t>(begin);
  place.end = static_cast<int64_t>(end);
  LastPlace from_start;
  LastPlace& known = last != nullptr ? *last : from_start;
  if (begin < known.at) known = {};
  const std::string_view between = text.substr(known.at, begin - known.at);
  if (const size_t newline = between.rfind('\n'); newline != std::string_view::npos) {
    known.line += std::count(between.begin(), between.end(), '\n');
    known.line_begin = known.at = known.at + newline + 1;
    known.characters = 0;
  }
  // Of the line, up to a byte behind what is known.
  const auto characters_before = [&](size_t byte) {
    return known.characters +
           static_cast<int64_t>(utf8_count(text.substr(known.at, byte - known.at)));
  };
  const int64_t before = characters_before(begin);
  place.line = place.end_line = known.line;
  place.column = 1 + before;
  const std::string_view range = text.substr(begin, end - begin);
  if (const size_t newline = range.rfind('\n'); newline != std::string_view::npos) {
    place.end_line += std::count(range.begin(), range.end(), '\n');
    place.end_column = 1 + static_cast<int64_t>(utf8_count(range.substr(newline + 1)));
  } else {
    place.end_column = 1 + characters_before(end);
  }
  add_excerpt(place, text, known.line_begin, begin, end);
  if (begins_character(text, begin)) {
    known.at = begin;
    known.characters = before;
  }
  return place;
}

void Diagnostics::count_only(Severity severity) { ++left_out_[index(severity)]; }

void Diagnostics::add(Diagnostic diagnostic) {
  const Severity severity = diagnostic.severity;
  if (severity == Severity::error && diagnostic.code.substr(0, 1) == "E" &&
      diagnostic.place.line > 0) {
    const bool known =
        std::any_of(diagnostics_.begin(), diagnostics_.end(), [&](const Diagnostic& other) {
          return other.severity == Severity::error && other.code.substr(0, 1) == "E" &&
                 other.place.line > 0 && other.place.begin == diagnostic.place.begin &&
                 other.place.end == diagnostic.place.end &&
                 other.place.file == diagnostic.place.file;
        });
    if (known) return;
  }
  if (full(severity)) {
    count_only(severity);
    return;
  }
  ++kept_[index(severity)];
  diagnostics_.push_back(std::move(diagnostic));
}

void Diagnostics::add_all(const Diagnostics& others) {
  for (const Diagnostic& diagnostic : others.diagnostics_) add(diagnostic);
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note})
    left_out_[index(severity)] += others.left_out(severity);
}

std::vector<Diagnostic> Diagnostics::take_warnings() {
  std::vector<Diagnostic> taken;
  std::vector<Diagnostic> others;
  for (Diagnostic& diagnostic : diagnostics_)
    (diagnostic.severity == Severity::warning ? taken : others).push_back(std::move(diagnostic));
  diagnostics_ = std::move(others);
  kept_[index(Severity::warning)] = 0;
  return taken;
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> all = diagnostics_;
  std::stable_sort(all.begin(), all.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.place.file, a.place.begin, a.code) <
           std::tie(b.place.file, b.place.begin, b.code);
  });
  return all;
}

}  // namespace meshplan
