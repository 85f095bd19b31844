#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "base/int_math.h"
#include "base/utf8.h"

namespace meshplan {

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    const size_t length = utf8_length(text, at);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (length == 1 && is_control(text, at, length)) {
      result += "\\u00";
      result += digits[byte >> 4U];
      result += digits[byte & 15U];
    } else if (length > 1 && is_control(text, at, length)) {
      result += one_line(text.substr(at, length));
    } else {
      result += text.substr(at, length == 0 ? 1 : length);
    }
    at += length == 0 ? 1 : length;
  }
  return result;
}

std::string quoted(std::string_view text) { return "\"" + escaped(text) + "\""; }

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (size_t i = 0; i < texts.size(); ++i) list += (i > 0 ? ", " : "") + quoted(texts[i]);
  return list + "]";
}

void append_integer(std::string& out, int64_t value) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

namespace {

// value / 1000 with three significant digits, in integer arithmetic so that every machine prints
// the same.
std::string three_digits(int64_t thousandths) {
  std::array<char, 32> buffer{};
  if (thousandths < 10'000) {
    int64_t rounded = (thousandths + 5) / 10;
    if (rounded < 1000) {
      std::snprintf(buffer.data(), buffer.size(), "%lld.%02lld",
                    static_cast<long long>(rounded / 100), static_cast<long long>(rounded % 100));
      return buffer.data();
    }
  }
  if (thousandths < 100'000) {
    int64_t rounded = (thousandths + 50) / 100;
    if (rounded < 1000) {
      std::snprintf(buffer.data(), buffer.size(), "%lld.%lld", static_cast<long long>(rounded / 10),
                    static_cast<long long>(rounded % 10));
      return buffer.data();
    }
  }
  return std::to_string((thousandths + 500) / 1000);
}

}  // namespace

std::string human_bytes(int64_t bytes) {
  if (bytes < 0) return "-" + human_bytes(bytes == INT64_MIN ? INT64_MAX : -bytes);
  if (bytes < 1024) return std::to_string(bytes) + " B";
  static constexpr std::array<const char*, 6> units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  int64_t scale = 1024;
  // A value that would print as 1024 of a unit is 1.00 of the next unit.
  while (unit + 1 < units.size() && bytes >= scale * 1024 - scale / 2) {
    scale *= 1024;
    ++unit;
  }
  auto thousandths = static_cast<int64_t>(static_cast<int128>(bytes) * 1000 / scale);
  return three_digits(thousandths) + " " + units[unit];
}

std::string human_ns(int64_t nanoseconds) {
  if (nanoseconds < 0) return "-" + human_ns(nanoseconds == INT64_MIN ? INT64_MAX : -nanoseconds);
  if (nanoseconds < 1000) return std::to_string(nanoseconds) + " ns";
  // A value that would print as 1000 of a unit is 1.00 of the next unit.
  if (nanoseconds < 999'500) return three_digits(nanoseconds) + " us";
  if (nanoseconds < 999'500'000) return three_digits(nanoseconds / 1000) + " ms";
  return three_digits(nanoseconds / 1'000'000) + " s";
}

std::string with_commas(int64_t value) {
  std::string digits = std::to_string(value);
  size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string counted(int64_t number, std::string_view noun) {
  return with_commas(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  auto lower = [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  std::vector<size_t> row;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(candidate.size(), word.size());
    if (longer - std::min(candidate.size(), word.size()) >= best_distance) continue;
    row.resize(candidate.size() + 1);
    for (size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    size_t least = 0;  // of a row; rows only grow
    for (size_t i = 1; i <= word.size() && least < best_distance; ++i) {
      size_t diagonal = row[0];
      row[0] = least = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        size_t cost = diagonal + (lower(word[i - 1]) != lower(candidate[j - 1]));
        diagonal = row[j];
        row[j] = std::min({cost, row[j] + 1, row[j - 1] + 1});
        least = std::min(least, row[j]);
      }
    }
    if (least < best_distance && row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace meshplan
