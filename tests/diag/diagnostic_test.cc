// Places and the collector.
#include "diag/diagnostic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "base/utf8.h"

namespace meshplan {
namespace {

// What locate says, by looking at all of the text and of the line.
Place located_plainly(std::string_view text, size_t begin, size_t end) {
  const auto start_of_line = [&](size_t at) { return at == 0 ? 0 : text.rfind('\n', at - 1) + 1; };
  const auto lines_before = [&](size_t at) { return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'); };
  Place place;
  place.file = "a";
  place.begin = static_cast<int64_t>(begin);
  place.end = static_cast<int64_t>(end);
  place.line = 1 + lines_before(begin);
  place.end_line = 1 + lines_before(end);
  const size_t first = start_of_line(begin);
  place.column = 1 + static_cast<int64_t>(utf8_count(text.substr(first, begin - first)));
  place.end_column = 1 + static_cast<int64_t>(utf8_count(text.substr(start_of_line(end), end - start_of_line(end))));
  std::string_view line = text.substr(first, text.find('\n', begin) - first);
  if (!line.empty() && line.back() == '\r' && begin < first + line.size()) line.remove_suffix(1);
  const auto column = static_cast<size_t>(place.column - 1);
  const size_t from = column > 40 && utf8_count(line) > 110 ? column - 40 : 0;
  size_t shown = 0;
  size_t at = 0;
  for (size_t character = 0; at < line.size() && shown < 110; ++character) {
    const size_t length = utf8_length(line, at);
    if (character >= from) {
      ++shown;
      if (length == 0) {
        place.excerpt += "\xEF\xBF\xBD";
      } else if (is_control(line, at, length)) {
        place.excerpt += ' ';
      } else {
        place.excerpt += line.substr(at, length);
      }
    }
    at += std::max<size_t>(1, length);
  }
  if (at < line.size()) place.excerpt += "...";
  if (from > 0) place.excerpt = "..." + place.excerpt;
  place.caret = static_cast<int64_t>(column - from + (from > 0 ? 3 : 0));
  const size_t in_line = std::min(begin - first, line.size());
  const size_t width = utf8_count(line.substr(in_line, std::min(end - first, line.size()) - in_line));
  place.caret_width = static_cast<int64_t>(std::clamp<size_t>(width, 1, 110 - (column - from)));
  return place;
}

Diagnostic error_at(size_t begin, size_t end, const std::string& code = "E0201") {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.place = locate("one\ntwo\nthree\n", "a.json", begin, end);
  diagnostic.message = "wrong";
  return diagnostic;
}

}  // namespace

TEST_CASE("a place counts lines and characters from 1 and bytes from 0") {
  const std::string text = "{\n  \"größe\": 7\n}\n";
  const Place place = locate(text, "a.json", text.find('7'), text.find('7') + 1, "/größe");
  CHECK(place.line == 2);
  CHECK(place.column == 12);  // "ö" and "ß" are one character each
  CHECK(place.end_line == 2);
  CHECK(place.end_column == 13);
  CHECK(place.begin == 15);
  CHECK(place.end == 16);
  CHECK(place.excerpt == "  \"größe\": 7");
  CHECK(place.caret == 11);
  CHECK(place.caret_width == 1);
  CHECK(place.pointer == "/größe");
}

TEST_CASE("a place at the very end, over several lines, beyond the text, in nothing") {
  const std::string text = "ab\r\ncd";
  CHECK(locate(text, "a", 6, 6).line == 2);
  CHECK(locate(text, "a", 6, 6).column == 3);
  const Place lines = locate(text, "a", 1, 5);
  CHECK(lines.line == 1);
  CHECK(lines.column == 2);
  CHECK(lines.end_line == 2);
  CHECK(lines.end_column == 2);
  CHECK(lines.excerpt == "ab");
  CHECK(lines.caret_width == 1);
  CHECK(locate(text, "a", 90, 99).begin == 6);
  CHECK(locate("", "a", 0, 0).line == 1);
  CHECK(whole_file("a").line == 0);
}

TEST_CASE("a long line is cut to a window around the place") {
  const std::string text = std::string(1000, 'a') + "HERE" + std::string(1000, 'b');
  const Place place = locate(text, "a", 1000, 1004);
  CHECK(place.column == 1001);
  CHECK(place.excerpt.size() < 130);
  CHECK(place.excerpt.substr(static_cast<size_t>(place.caret), 4) == "HERE");
  CHECK(place.caret_width == 4);
  CHECK(place.excerpt.substr(0, 3) == "...");
  const Place wide = locate(text, "a", 0, 2004);
  CHECK(static_cast<size_t>(wide.caret + wide.caret_width) <= wide.excerpt.size());
}

TEST_CASE("bytes that are not UTF-8 and control characters are shown without harm") {
  const std::string text = "\xff\x01 x\t9";
  const Place place = locate(text, "a", 5, 6);
  CHECK(place.column == 6);
  CHECK(place.excerpt == "\xEF\xBF\xBD  x 9");
  CHECK(place.caret == 5);
}

TEST_CASE("places are the same whatever was located before, and where little of the text is looked at") {
  constexpr uint64_t seed = 7;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> parts{"a", "b", "\xC3\xB6", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\t", "\r", "\xff", "\x80", "\xE2\x82"};
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    std::string text;
    const size_t rare_newlines = 1 + random() % 200;
    const size_t kinds = random() % 2 == 0 ? 2 : parts.size();
    for (size_t size = random() % 500; size > 0; --size)
      text += random() % rare_newlines == 0 ? std::string("\n") : parts[random() % kinds];
    LastPlace last;
    std::vector<size_t> begins;
    for (int k = 0; k < 8; ++k) begins.push_back(random() % (text.size() + 1));
    if (random() % 2 == 0) std::sort(begins.begin(), begins.end());
    for (const size_t begin : begins) {
      CAPTURE(begin);
      const size_t end = begin + random() % (random() % 2 == 0 ? 4 : text.size() - begin + 1);
      CAPTURE(end);
      const Place plain = located_plainly(text, begin, std::min(end, text.size()));
      CHECK(locate(text, "a", begin, end) == plain);
      CHECK(locate(text, "a", begin, end, {}, &last) == plain);
    }
  }
}

TEST_CASE("many places of a long text take one pass over it, in one line or in many") {
  for (const char* between : {", ", ",\n"}) {
    std::string text;
    std::vector<size_t> begins;
    for (int i = 0; i < 100'000; ++i) {
      begins.push_back(text.size());
      text += "\"layers." + std::to_string(i) + ".weight\"" + between;
    }
    LastPlace last;
    int64_t columns = 0;
    // One by one from the start of the text it would be 130 GB.
    for (const size_t begin : begins) columns += locate(text, "a", begin, begin + 8, {}, &last).column;
    CHECK(columns > 0);
    CHECK(locate(text, "a", begins.back(), begins.back() + 8, {}, &last) == located_plainly(text, begins.back(), begins.back() + 8));
  }
}

TEST_CASE("an error where there is one already is dropped") {
  Diagnostics diagnostics;
  diagnostics.add(error_at(0, 3));
  diagnostics.add(error_at(0, 3, "E0205"));
  diagnostics.add(error_at(0, 2));
  CHECK(diagnostics.count(Severity::error) == 2);
  // Warnings are judgements of their own.
  Diagnostic warning = error_at(0, 3, "W0301");
  warning.severity = Severity::warning;
  diagnostics.add(warning);
  diagnostics.add(warning);
  CHECK(diagnostics.count(Severity::warning) == 2);
  warning.severity = Severity::error;
  diagnostics.add(warning);
  CHECK(diagnostics.count(Severity::error) == 3);
}

TEST_CASE("beyond the cap diagnostics are only counted, by severity") {
  Diagnostics diagnostics(2);
  for (size_t i = 0; i < 5; ++i) diagnostics.add(error_at(i, i + 1));
  Diagnostic warning = error_at(0, 1, "W0301");
  warning.severity = Severity::warning;
  diagnostics.add(warning);
  CHECK(diagnostics.full(Severity::error));
  CHECK_FALSE(diagnostics.full(Severity::warning));
  diagnostics.count_only(Severity::error);
  CHECK(diagnostics.count(Severity::error) == 6);
  CHECK(diagnostics.left_out(Severity::error) == 4);
  CHECK(diagnostics.kept().size() == 3);
  CHECK(diagnostics.has_errors());
}

TEST_CASE("the order is by file, position and code, then as added") {
  Diagnostics diagnostics;
  diagnostics.add(error_at(8, 9));
  diagnostics.add(error_at(0, 3, "E0205"));
  diagnostics.add(error_at(0, 2, "E0201"));
  Diagnostic other = error_at(0, 1);
  other.place.file = "A.json";
  diagnostics.add(other);
  const auto sorted = diagnostics.sorted();
  CHECK(sorted[0].place.file == "A.json");
  CHECK(sorted[1].code == "E0201");
  CHECK(sorted[2].code == "E0205");
  CHECK(sorted[3].place.line == 3);
}

}  // namespace meshplan
