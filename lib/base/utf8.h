// UTF-8 as bytes that came from outside: what is a character, what is not, and how to show either.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace meshplan {

// Length of the well-formed character at `at` (1 to 4); 0 where there is none: truncated, overlong, a surrogate, above U+10FFFF.
[[nodiscard]] size_t utf8_length(std::string_view text, size_t at);

// Characters of `text`; a byte that belongs to no character counts as one.
[[nodiscard]] size_t utf8_count(std::string_view text);

// Appends the character; `code_point` is a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

// The text on one line for a message: control characters and stray bytes as \n, \t or \xNN, cut to `limit` characters and "..." where
// longer.
[[nodiscard]] std::string printable(std::string_view text, size_t limit = 60);

// The text as a JSON string with its quotes: only ", \ and control characters escaped (\b \f \n \r \t, else \u00nn), stray bytes as U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace meshplan
