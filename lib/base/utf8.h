// UTF-8 as bytes that came from outside: what is a character, what is not, and how to show either.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace meshplan {

// Length of the well-formed character at `at` (1 to 4); 0 where there is none: truncated, overlong, a surrogate, above U+10FFFF.
[[nodiscard]] size_t utf8_length(std::string_view text, size_t at);

// The first byte from `at` on that belongs to no character; the text's size where there is none.
[[nodiscard]] size_t find_stray_byte(std::string_view text, size_t at = 0);

// Characters of `text`; a byte that belongs to no character counts as one.
[[nodiscard]] size_t utf8_count(std::string_view text);

// Appends the character; `code_point` is a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

// Whether the well-formed character of `length` bytes at `at` steers a terminal or turns lines around instead of being shown: C0 and C1
// controls, DEL, line and paragraph separators, the overrides of writing direction.
[[nodiscard]] bool is_control(std::string_view text, size_t at, size_t length);

// The text on one line, whole: control characters as \n, \t, \r, \xNN or \uNNNN, stray bytes as \xNN, all else as it stands. What names
// and messages from outside go through before a person's terminal or a CI log reads them.
// Law: one_line(one_line(text)) == one_line(text), and it holds no newline and no control character.
[[nodiscard]] std::string one_line(std::string_view text);

// The text on one line for a message: control characters and stray bytes as \n, \t or \xNN, cut to `limit` characters and "..." where
// longer.
[[nodiscard]] std::string printable(std::string_view text, size_t limit = 60);

// The text as a JSON string with its quotes: only ", \ and control characters escaped (\b \f \n \r \t, else \u00nn), stray bytes as U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
void append_json_string(std::string& out, std::string_view text);

}  // namespace meshplan
