#include "base/utf8.h"

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
  const auto tail = [&](size_t i, unsigned char low = 0x80, unsigned char high = 0xBF) { return byte(i) >= low && byte(i) <= high; };
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

size_t utf8_count(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    while (at + 8 <= text.size()) {  // eight ASCII characters at a time
      uint64_t eight = 0;
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080U) != 0) break;
      at += 8;
      count += 8;
    }
    if (at == text.size()) break;
    const size_t length = utf8_length(text, at);
    at += length == 0 ? 1 : length;
  }
  return count;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
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

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    if (count == limit) return out + "...";
    const size_t length = utf8_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      if (byte == '\n') {
        out += "\\n";
      } else if (byte == '\t') {
        out += "\\t";
      } else if (byte == '\r') {
        out += "\\r";
      } else {
        out += "\\x";
        out += hex_digits[byte >> 4];
        out += hex_digits[byte & 15];
      }
      ++at;
      continue;
    }
    out.append(text.substr(at, length));
    at += length;
  }
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      switch (byte) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\b':
          out += "\\b";
          break;
        case '\f':
          out += "\\f";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        default:
          if (byte < 0x20) {
            out += "\\u00";
            out += hex_digits[byte >> 4];
            out += hex_digits[byte & 15];
          } else {
            out += text[at];
          }
      }
      ++at;
      continue;
    }
    const size_t length = utf8_length(text, at);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++at;
    } else {
      out.append(text.substr(at, length));
      at += length;
    }
  }
  out += '"';
  return out;
}

}  // namespace meshplan
