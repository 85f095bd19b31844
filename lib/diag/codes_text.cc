#include "diag/code_parts.h"

namespace meshplan {

std::vector<CodeEntry> text_codes() {
  const std::string mesh = R"~("mesh": {"dims": [{"name": "dp", "size": 2}]})~";
  std::string deep = spec_of(mesh + R"~(, "x-deep": )~" + std::string(70, '[') + std::string(70, ']'));
  return {
      {"E0101", "not_utf8", "the file holds bytes that are not UTF-8",
       "Specs and plans are UTF-8 text. Bytes from another encoding (Latin-1, UTF-16) have no meaning in it, wherever they stand: in a "
       "name, a "
       "comment "
       "or between values. Save the file as UTF-8.",
       spec_of("// d\xE9"
               "bit\n  " +
               mesh),
       spec_of("// d\xC3\xA9"
               "bit\n  " +
               mesh)},
      {"E0102", "byte_order_mark", "the file begins with a byte order mark",
       "Some editors put the three bytes EF BB BF in front of UTF-8 text. JSON forbids them, and other tools that read the same file will "
       "stumble over them. Save the file as UTF-8 without a byte order mark.",
       "\xEF\xBB\xBF" + spec_of(mesh), spec_of(mesh)},
      {"E0103", "unexpected_character", "a character that JSON does not have at this place",
       "The text is JSON, in specs with // and /* */ comments. At this place it needs something else: a value, a key in double quotes, a "
       "colon, a "
       "comma or a closing bracket of the kind that was opened.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size"= 2}]})~"), spec_of(mesh)},
      {"E0104", "unexpected_end", "the file ends before its value does",
       "A brace or bracket that was opened is not closed, or the file is empty. The second place shows which one is open.",
       "{\n  \"schema\": \"meshplan/spec/1\",\n  " + mesh, spec_of(mesh)},
      {"E0105", "bad_string", "a string that JSON does not allow",
       "Strings stand in double quotes on one line. Control characters, the backslash and the double quote are written as escapes, and \\u "
       "takes four hexadecimal digits; characters beyond U+FFFF take two such escapes, or stand as they are.",
       spec_of(R"~("mesh": {"dims": [{"name": "d\p", "size": 2}]})~"), spec_of(mesh)},
      {"E0106", "bad_number", "a number that JSON does not allow",
       "Numbers are decimal: digits with an optional minus sign, fraction and exponent. No plus sign, leading zeros, hexadecimal, digit "
       "separators, NaN or Infinity.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 0x2}]})~"), spec_of(mesh)},
      {"E0107", "comma", "a comma too many or one too few",
       "Values of a list and members of an object are separated by exactly one comma, and none stands after the last.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2},]})~"), spec_of(mesh)},
      {"E0108", "too_deep", "values nested too deep",
       "At most 64 levels of lists and objects are read. A spec needs 8; what is deeper was not written by a person.", deep,
       spec_of(mesh + R"~(, "x-deep": [[[[]]]])~")},
      {"E0109", "too_large", "the file is too large",
       "At most 64 MiB and 8,388,608 values are read, which is room for more than 300,000 redistributions. Put repeated redistributions "
       "into "
       "one with a count, or split the file.",
       "yes '[]' | head -c 70000000 | meshplan plan -", "meshplan plan spec.json"},
      {"E0110", "duplicate_key", "a key given twice in one object",
       "Which of the two values holds would depend on the reader, so neither is taken. The second place shows the first one.",
       spec_of(R"~("mesh": {"dims": [{"name": "dp", "size": 2, "size": 4}]})~"), spec_of(mesh)},
      {"E0111", "trailing_text", "text after the end of the document",
       "One file holds one object. Nothing but blanks and comments may follow it.", spec_of(mesh) + "\n{}", spec_of(mesh)},
      {"E0112", "open_comment", "a comment that is never closed",
       "A comment that begins with /* ends with */. A comment to the end of the line begins with //.", spec_of("/* two ranks\n  " + mesh),
       spec_of("/* two ranks */\n  " + mesh)},
      {"E0113", "unquoted", "a word without quotes",
       "Keys and texts stand in double quotes. The only words without quotes are true, false and null.",
       spec_of(R"~(mesh: {"dims": [{"name": "dp", "size": 2}]})~"), spec_of(mesh)},
  };
}

}  // namespace meshplan
