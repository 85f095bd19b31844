// Places and the collector.
#include "diag/diagnostic.h"

#include <doctest/doctest.h>

namespace meshplan {
namespace {

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
