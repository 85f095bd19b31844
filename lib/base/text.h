// Text helpers shared by all printers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshplan {

[[nodiscard]] std::string join(const std::vector<std::string>& parts, std::string_view separator);

// `text` made safe for a one-line message or a table: control characters, quotes and backslashes
// escaped as in JSON. Law: the result has no byte below 0x20 and no 0x7f, and different texts have
// different results.
[[nodiscard]] std::string escaped(std::string_view text);
// The same in double quotes.
[[nodiscard]] std::string quoted(std::string_view text);
// ["a", "b"]
[[nodiscard]] std::string quoted_list(const std::vector<std::string>& texts);

// Appends the decimal digits of `value` without a temporary string.
void append_integer(std::string& out, int64_t value);

// Parses a decimal integer that is the whole of `text`; nullopt for anything else and on int64
// overflow.
[[nodiscard]] std::optional<int64_t> parse_int(std::string_view text);

// "512 B", "64.0 KiB", "1.25 GiB": three significant digits, powers of 1024.
[[nodiscard]] std::string human_bytes(int64_t bytes);

// "0 ns", "850 ns", "12.3 us", "4.56 ms", "1.20 s": three significant digits.
[[nodiscard]] std::string human_ns(int64_t nanoseconds);

// 1234567 -> "1,234,567".
[[nodiscard]] std::string with_commas(int64_t value);

// "1 rank", "1,024 ranks".
[[nodiscard]] std::string counted(int64_t number, std::string_view noun);

// The candidate with the smallest edit distance to `word` (ignoring case), if close enough to
// suggest: distance <= max(1, length / 3).
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& candidates);

}  // namespace meshplan
