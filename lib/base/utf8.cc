#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace meshplan {
namespace {

constexpr const char* hex_digits = "0123456789abcdef";

}  // namespace

size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const size_t left = text.size() - at;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const auto tail = [&](size_t i, unsigned char low = 0x80, unsigned char high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  if (lead >= 0xC2 && lead <= 0xDF) return left >= 2 && tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned char low = lead == 0xE0 ? 0xA0 : 0x80;   // overlong below
    const unsigned char high = lead == 0xED ? 0x9F : 0xBF;  // surrogates above
    return left >= 3 && tail(1, low, high) && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned char low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xF4 ? 0x8F : 0xBF;
    return left >= 4 && tail(1, low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

namespace {

// Where the next character may be other than ASCII: goes on from `at` by eights.
size_t skip_ascii(std::string_view text, size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, text.data() + at, 8);
    if ((eight & 0x8080808080808080U) != 0) break;
  }
  return at;
}

}  // namespace

size_t find_stray_byte(std::string_view text, size_t at) {
  while ((at = skip_ascii(text, at)) < text.size()) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return at;
}

size_t utf8_count(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    const size_t before = at;
    at = skip_ascii(text, at);
    count += at - before;
    if (at == text.size()) break;
    const size_t length = utf8_length(text, at);
    at += length == 0 ? 1 : length;
  }
  return count;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) {
    out += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool is_control(std::string_view text, size_t at, size_t length) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (length == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (length == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;  // U+0080 to U+009F
  if (length != 3) return false;
  if (byte(0) == 0xEF) return byte(1) == 0xBF && byte(2) >= 0xBE;  // U+FFFE, U+FFFF
  if (byte(0) != 0xE2) return false;
  // U+2028 to U+202E, U+2066 to U+2069
  return (byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||
         (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);
}

namespace {

// Appends the printable form of the character or invalid byte at `at`; returns how many bytes of
// `text` it covers.
size_t append_shown(std::string& out, std::string_view text, size_t at) {
  const size_t length = utf8_length(text, at);
  if (length > 0 && !is_control(text, at, length)) {
    out.append(text.substr(at, length));
    return length;
  }
  const auto byte = static_cast<unsigned char>(text[at]);
  const auto hex = [&](unsigned value, int digits) {
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
      out += hex_digits[value >> shift & 15];
  };
  if (length > 1) {
    unsigned code = length == 2 ? byte & 0x1FU : byte & 0x0FU;
    for (size_t i = 1; i < length; ++i)
      code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
    out += "\\u";
    hex(code, 4);
    return length;
  }
  if (byte == '\n' || byte == '\t' || byte == '\r') {
    out += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : "\\r";
  } else {
    out += "\\x";
    hex(byte, 2);
  }
  return 1;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) at += append_shown(out, text, at);
  return out;
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    if (count == limit) return out + "...";
    at += append_shown(out, text, at);
  }
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  size_t plain = 0;  // up to here the text is written
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const size_t length = byte < 0x80 ? 1 : utf8_length(text, at);
    const bool stands = length > 0 && byte >= 0x20 && byte != '"' && byte != '\\';
    const size_t next = at + std::max<size_t>(length, 1);
    if (!stands) {
      constexpr std::string_view special = "\"\\\b\f\n\r\t";
      const size_t known = special.find(text[at]);
      out.append(text, plain, at - plain);
      plain = next;
      if (length == 0) {
        out += "\xEF\xBF\xBD";
      } else if (known != std::string_view::npos) {
        out += {'\\', "\"\\bfnrt"[known]};
      } else {
        out += "\\u00";
        out += {hex_digits[byte >> 4], hex_digits[byte & 15]};
      }
    }
    at = next;
  }
  out.append(text, plain);
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_json_string(out, text);
  return out;
}

}  // namespace meshplan
