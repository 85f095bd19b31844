#include "spec/document.h"

#include <algorithm>
#include <charconv>
#include <list>

#include "base/text.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

// The character that an escape of four hexadecimal digits at `at` stands for; nullopt where they are none.
std::optional<uint32_t> hex4(std::string_view text, size_t at) {
  if (at + 4 > text.size()) return std::nullopt;
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    const char c = text[at + i];
    uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<uint32_t>(c - 'A' + 10);
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return value;
}

// `inside`: what stands between the quotes of a well-formed string.
void unescape(std::string_view inside, std::string& out) {
  out.clear();
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      out += inside[i];
      continue;
    }
    const char c = ++i < inside.size() ? inside[i] : '\\';
    switch (c) {
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'u': {
        uint32_t unit = hex4(inside, i + 1).value_or(0xFFFD);
        i += 4;
        if (unit >= 0xD800 && unit < 0xDC00) {
          const uint32_t low = hex4(inside, i + 3).value_or(0xDC00);
          unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
          i += 6;
        }
        append_utf8(out, unit);
        break;
      }
      default:
        out += c;
    }
  }
}

std::string_view resolved(std::string_view quoted, bool escaped, std::string& buffer) {
  const std::string_view inside = quoted.size() >= 2 ? quoted.substr(1, quoted.size() - 2) : std::string_view();
  if (!escaped) return inside;
  unescape(inside, buffer);
  return buffer;
}

// The shortest decimal of a double, laid out as 1e+16, 0.0001, 12.5, 3.0: exponents below -4 and from 16 on, always a point or an exponent.
std::string shortest(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  const int64_t exponent = parse_int(text.substr(text[e + 1] == '+' ? e + 2 : e + 1)).value_or(0);
  const auto count = static_cast<int64_t>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + "e" + (exponent < 0 ? "-" : "+");
    const std::string power = std::to_string(exponent < 0 ? -exponent : exponent);
    return out + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent + 1)) + "." + digits.substr(static_cast<size_t>(exponent + 1));
}

std::string canonical_number(std::string_view text, JsonKind kind) {
  if (kind == JsonKind::integer) return text == "-0" ? "0" : std::string(text);
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::string(text);  // beyond every double: nobody reads it, it stays as written
  return shortest(value);
}

struct Member {
  std::string_view key;
  uint32_t node = 0;
};

// A text in its quotes: without a backslash it is canonical as it stands.
void append_text(std::string& out, std::string_view quoted, bool escaped) {
  if (!escaped) {
    out += quoted;
    return;
  }
  std::string buffer;
  out += json_string(resolved(quoted, escaped, buffer));
}

void append_scalar(const JsonDocument& document, const JsonNode& node, std::string& out) {
  switch (node.kind) {
    case JsonKind::string:
      append_text(out, raw(document, node), node.escaped);
      break;
    case JsonKind::integer:
    case JsonKind::number:
      out += canonical_number(raw(document, node), node.kind);
      break;
    case JsonKind::boolean:
      out += node.truth ? "true" : "false";
      break;
    default:
      out += "null";
  }
}

// Depth is at most max_json_depth, so that recursion is safe here.
void append_canonical(const JsonDocument& document, uint32_t index, std::string& out) {
  const JsonNode& node = document.nodes[index];
  if (node.kind == JsonKind::array) {
    out += '[';
    for (uint32_t child = index + 1; child < node.next; child = document.nodes[child].next) {
      if (child > index + 1) out += ',';
      append_canonical(document, child, out);
    }
    out += ']';
  } else if (node.kind == JsonKind::object) {
    std::vector<Member> members;
    members.reserve(node.count);
    std::list<std::string> unescaped;
    for (uint32_t child = index + 1; child < node.next; child = document.nodes[child].next) {
      const JsonNode& member = document.nodes[child];
      std::string buffer;
      std::string_view key = key_of(document, member, buffer);
      if (member.key_escaped) key = unescaped.emplace_back(key);
      members.push_back({key, child});
    }
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
    out += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ',';
      const JsonNode& member = document.nodes[members[i].node];
      append_text(out, document.text.substr(member.key_begin, member.key_end - member.key_begin), member.key_escaped);
      out += ':';
      append_canonical(document, members[i].node, out);
    }
    out += '}';
  } else {
    append_scalar(document, node, out);
  }
}

}  // namespace

const char* to_text(JsonKind kind) {
  switch (kind) {
    case JsonKind::null:
      return "null";
    case JsonKind::boolean:
      return "true or false";
    case JsonKind::integer:
      return "an integer";
    case JsonKind::number:
      return "a number";
    case JsonKind::string:
      return "a string";
    case JsonKind::array:
      return "a list";
    case JsonKind::object:
      return "an object";
    case JsonKind::broken:
      return "nothing readable";
  }
  return "";
}

std::string_view raw(const JsonDocument& document, const JsonNode& node) { return document.text.substr(node.begin, node.end - node.begin); }

std::string_view string_of(const JsonDocument& document, const JsonNode& node, std::string& buffer) {
  return resolved(raw(document, node), node.escaped, buffer);
}

std::string_view key_of(const JsonDocument& document, const JsonNode& node, std::string& buffer) {
  return resolved(document.text.substr(node.key_begin, node.key_end - node.key_begin), node.key_escaped, buffer);
}

uint32_t find_key(const JsonDocument& document, uint32_t object, std::string_view key) {
  const JsonNode& node = document.nodes[object];
  if (node.kind != JsonKind::object) return 0;
  std::string buffer;
  for (uint32_t child = object + 1; child < node.next; child = document.nodes[child].next) {
    const JsonNode& member = document.nodes[child];
    if (!member.repeated && !member.keyless && key_of(document, member, buffer) == key) return child;
  }
  return 0;
}

std::optional<int64_t> integer_of(const JsonDocument& document, const JsonNode& node) {
  return node.kind == JsonKind::integer ? parse_int(raw(document, node)) : std::nullopt;
}

std::string pointer_to(const JsonDocument& document, uint32_t index) {
  std::vector<uint32_t> way;
  for (uint32_t at = index; at != 0; at = document.nodes[at].parent) way.push_back(at);
  std::string pointer;
  std::string buffer;
  for (size_t i = way.size(); i-- > 0;) {
    const JsonNode& node = document.nodes[way[i]];
    pointer += '/';
    if (node.key_begin == node.key_end) {
      size_t position = 0;
      for (uint32_t child = node.parent + 1; child != way[i]; child = document.nodes[child].next) ++position;
      pointer += std::to_string(position);
      continue;
    }
    for (const char c : key_of(document, node, buffer)) {
      if (c == '~') {
        pointer += "~0";
      } else if (c == '/') {
        pointer += "~1";
      } else {
        pointer += c;
      }
    }
  }
  return pointer;
}

Place place_of(const JsonDocument& document, uint32_t index) {
  const JsonNode& node = document.nodes[index];
  return locate(document.text, document.file, node.begin, node.end, pointer_to(document, index));
}

Place place_of_key(const JsonDocument& document, uint32_t index) {
  const JsonNode& node = document.nodes[index];
  return locate(document.text, document.file, node.key_begin, node.key_end, pointer_to(document, index));
}

std::string canonical_text(const JsonDocument& document, uint32_t node) {
  std::string out;
  append_canonical(document, node, out);
  return out;
}

}  // namespace meshplan
