#include "json/words.h"

namespace meshplan {

JsonKind number_kind(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > from;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const size_t first = at;
  if (!digits() || (text[first] == '0' && at > first + 1)) return JsonKind::broken;
  JsonKind kind = JsonKind::integer;
  if (at < text.size() && text[at] == '.') {
    ++at;
    kind = JsonKind::number;
    if (!digits()) return JsonKind::broken;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    kind = JsonKind::number;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits()) return JsonKind::broken;
  }
  return at == text.size() ? kind : JsonKind::broken;
}

std::string number_help(std::string_view word) {
  if (word[0] == '+') return "write it without the plus sign";
  if (word[0] == '.') return "write a digit before the point";
  const std::string_view digits = word[0] == '-' ? word.substr(1) : word;
  if (digits.size() > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
    return "hexadecimal is not JSON; write it in decimal";
  if (digits.size() > 1 && digits[0] == '0' && is_digit(digits[1]))
    return "write it without leading zeros";
  if (word.find('_') != std::string_view::npos) return "write the digits without separators";
  return "write a decimal number such as 8, -1 or 2.5";
}

}  // namespace meshplan
