#include "diag/diagnostic.h"

#include <algorithm>
#include <tuple>

#include "base/enum_names.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

constexpr size_t window = 110;      // characters shown of a long line
constexpr size_t window_lead = 40;  // characters before the place

// Number of characters before byte `at`, which may be inside a character.
size_t characters_before(std::string_view line, size_t at) {
  return utf8_count(line.substr(0, at));
}

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

void add_excerpt(Place& place, std::string_view line, size_t begin, size_t end) {
  const auto column = static_cast<size_t>(place.column - 1);
  const size_t from = column > window_lead && utf8_count(line) > window ? column - window_lead : 0;
  size_t shown = 0;
  size_t at = 0;
  for (size_t character = 0; at < line.size() && shown < window; ++character) {
    const size_t length = utf8_length(line, at);
    if (character >= from) {
      append_shown(place.excerpt, line, at, length);
      ++shown;
    }
    at += length == 0 ? 1 : length;
  }
  if (at < line.size()) place.excerpt += "...";
  if (from > 0) place.excerpt = "..." + place.excerpt;
  place.caret = static_cast<int64_t>(column - from + (from > 0 ? 3 : 0));
  const size_t width = utf8_count(line.substr(
      std::min(begin, line.size()), std::min(end, line.size()) - std::min(begin, line.size())));
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

Place locate(std::string_view text, std::string file, size_t begin, size_t end,
             std::string pointer) {
  begin = std::min(begin, text.size());
  end = std::clamp(end, begin, text.size());
  Place place;
  place.file = std::move(file);
  place.pointer = std::move(pointer);
  place.begin = static_cast<int64_t>(begin);
  place.end = static_cast<int64_t>(end);
  const auto start_of_line = [&](size_t at) {
    const size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    return before == std::string_view::npos ? 0 : before + 1;
  };
  const size_t first = start_of_line(begin);
  place.line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(first), '\n');
  // npos - first is past the end, which substr allows
  std::string_view line = text.substr(first, text.find('\n', begin) - first);
  if (!line.empty() && line.back() == '\r' && begin < first + line.size()) line.remove_suffix(1);
  place.column = 1 + static_cast<int64_t>(characters_before(line, begin - first));
  const size_t last = start_of_line(end);
  const auto from = text.begin() + static_cast<std::ptrdiff_t>(first);
  place.end_line =
      place.line + std::count(from, from + static_cast<std::ptrdiff_t>(last - first), '\n');
  place.end_column = 1 + static_cast<int64_t>(characters_before(text.substr(last), end - last));
  add_excerpt(place, line, begin - first, end - first);
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

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> all = diagnostics_;
  std::stable_sort(all.begin(), all.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.place.file, a.place.begin, a.code) <
           std::tie(b.place.file, b.place.begin, b.code);
  });
  return all;
}

}  // namespace meshplan
