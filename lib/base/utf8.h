// UTF-8 text from untrusted input: which bytes form characters, and how to print them safely.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace meshplan {

// Length in bytes (1 to 4) of the well-formed character at `at`; 0 if there is none (truncated,
// overlong, a surrogate, above U+10FFFF).
[[nodiscard]] size_t utf8_length(std::string_view text, size_t at);

// The first byte from `at` on that belongs to no character; the text's size where there is none.
[[nodiscard]] size_t find_stray_byte(std::string_view text, size_t at = 0);

// Number of characters in `text`; a byte that is not part of a well-formed character counts as one.
[[nodiscard]] size_t utf8_count(std::string_view text);

// Appends the character; `code_point` is a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

// Whether the well-formed character of `length` bytes at `at` controls the terminal or the text
// direction instead of being shown: C0 and C1 controls, DEL, line and paragraph separators,
// bidirectional overrides; and U+FFFE and U+FFFF, which are no characters (XML has none of these).
[[nodiscard]] bool is_control(std::string_view text, size_t at, size_t length);

// The whole text on one line: control characters as \n, \t, \r, \xNN or \uNNNN, invalid bytes as
// \xNN, everything else unchanged. Applied to names and messages from untrusted input before they
// reach a terminal or a CI log. Law: one_line(one_line(text)) == one_line(text), and it holds no
// newline and no control character.
[[nodiscard]] std::string one_line(std::string_view text);

// The same, truncated to `limit` characters and "..." if longer.
[[nodiscard]] std::string printable(std::string_view text, size_t limit = 60);

// The text as a quoted JSON string: only ", \ and control characters are escaped (\b \f \n \r \t,
// else \u00nn); invalid bytes become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
void append_json_string(std::string& out, std::string_view text);

}  // namespace meshplan
