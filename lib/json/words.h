// The words of JSON: characters, numbers, and advice on what is nearly one.
#pragma once

#include <string>
#include <string_view>

#include "json/document.h"

namespace meshplan {

[[nodiscard]] inline bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
[[nodiscard]] inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
[[nodiscard]] inline bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '-' || c == '+' || c == '.';
}

// integer or number where the whole text is one; else broken.
[[nodiscard]] JsonKind number_kind(std::string_view text);
// What to write instead of something that was meant as a number.
[[nodiscard]] std::string number_help(std::string_view word);

}  // namespace meshplan
