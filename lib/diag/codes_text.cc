#include "diag/code_parts.h"

namespace meshplan {

std::vector<CodeEntry> text_codes() {
  const std::string mesh = R"~("mesh": {"dims": [{"name": "dp", "size": 2}]})~";
  std::string deep =
      spec_of(mesh + R"~(, "x-deep": )~" + std::string(70, '[') + std::string(70, ']'));
  return {
      {"E0101", "not_utf8", "the file contains bytes that are not UTF-8",
       "Specs and plans are UTF-8 text. Text in another encoding (Latin-1, UTF-16) is not accepted "
       "anywhere: in names, in comments or between values. Save the file as UTF-8.",
       spec_of("// d\xE9"
               "bit\n  " +
               mesh),
       spec_of("// d\xC3\xA9"
               "bit\n  " +
               mesh)},
      {"E0102", "byte_order_mark", "the file begins with a byte order mark",
       "Some editors put the three bytes EF BB BF in front of UTF-8 text. JSON does not allow "
       "them, and other tools that read the same file may fail. Save the file as UTF-8 without a "
       "byte order mark.",
       "\xEF\xBB\xBF" + spec_of(mesh), spec_of(mesh)},
      {"E0103", "unexpected_character", "a character that is not valid JSON here",
       "The text is JSON; specs may also have // and /* */ comments. At this place something else "
       "is expected: a value, a key in double quotes, a colon, a comma or the matching closing "
       "bracket.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size"= 2}]})~"), spec_of(mesh)},
      {"E0104", "unexpected_end", "the file ends before its value does",
       "A brace or bracket is not closed, or the file is empty. The second place shows the one that is open.",
       "{\n  \"schema\": \"meshplan/spec/1\",\n  " + mesh, spec_of(mesh)},
      {"E0105", "bad_string", "a string that JSON does not allow",
       "Strings are in double quotes on one line. Control characters, the backslash and the double "
       "quote must be escaped, and \\u takes four hexadecimal digits; characters beyond U+FFFF "
       "take two such escapes or are written directly.",
       spec_of(R"~("mesh": {"dims": [{"name": "d\p", "size": 2}]})~"), spec_of(mesh)},
      {"E0106", "bad_number", "a number that JSON does not allow",
       "Numbers are decimal: digits with an optional minus sign, fraction and exponent. No plus "
       "sign, leading zeros, hexadecimal, digit separators, NaN or Infinity.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 0x2}]})~"), spec_of(mesh)},
      {"E0107", "comma", "an extra or missing comma",
       "Values of a list and members of an object are separated by exactly one comma, without one after the last.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2},]})~"), spec_of(mesh)},
      {"E0108", "too_deep", "values nested too deeply",
       "Lists and objects may be nested at most 64 levels deep. A spec needs 8.", deep,
       spec_of(mesh + R"~(, "x-deep": [[[[]]]])~")},
      {"E0109", "too_large", "the file is too large",
       "The limits are 64 MiB and 8,388,608 values, enough for more than 300,000 redistributions. "
       "Replace repeated redistributions by one with a count, or split the file.",
       "yes '[]' | head -c 70000000 | meshplan plan -", "meshplan plan spec.json"},
      {"E0110", "duplicate_key", "a key given twice in one object",
       "Which of the two values counts would depend on the JSON parser, so the file is rejected. "
       "The second place shows the first key.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2, "size": 4}]})~"), spec_of(mesh)},
      {"E0111", "trailing_text", "text after the end of the document",
       "One file holds one object. Only whitespace and comments may follow it.",
       spec_of(mesh) + "\n{}", spec_of(mesh)},
      {"E0112", "open_comment", "a comment that is never closed",
       "A comment that begins with /* ends with */. A comment to the end of the line begins with //.",
       spec_of("/* two ranks\n  " + mesh), spec_of("/* two ranks */\n  " + mesh)},
      {"E0113", "unquoted", "a word without quotes",
       "Keys and strings are written in double quotes. The only words without quotes are true, false and null.",
       spec_of(R"~(mesh: {"dims": [{"name": "dp", "size": 2}]})~"), spec_of(mesh)},
  };
}

}  // namespace meshplan
