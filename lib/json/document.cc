#include "json/document.h"

#include <algorithm>
#include <array>

#include "base/enum_names.h"
#include "base/text.h"
#include "base/utf8.h"
#include "json/words.h"

namespace meshplan {
namespace {

// The 16 bits that the four hexadecimal digits at `at` stand for.
uint32_t hex4(std::string_view text, size_t at) {
  uint32_t value = 0;
  for (size_t i = at; i < std::min(at + 4, text.size()); ++i) {
    const char c = text[i];
    value = value * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return value;
}

// `inside`: what stands between the quotes of a well-formed string.
void unescape(std::string_view inside, std::string& out) {
  constexpr std::string_view letters = "bfnrt";
  out.clear();
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\' || ++i == inside.size()) {
      out += inside[std::min(i, inside.size() - 1)];
    } else if (inside[i] == 'u') {
      uint32_t unit = hex4(inside, i + 1);
      i += 4;
      if (unit >= 0xD800 && unit < 0xDC00) {
        unit = 0x10000 + ((unit - 0xD800) << 10) + (hex4(inside, i + 3) - 0xDC00);
        i += 6;
      }
      append_utf8(out, unit);
    } else {
      const size_t letter = letters.find(inside[i]);
      out += letter == std::string_view::npos ? inside[i] : "\b\f\n\r\t"[letter];
    }
  }
}

std::string_view resolved(std::string_view quoted, bool escaped, std::string& buffer) {
  const std::string_view inside =
      quoted.size() >= 2 ? quoted.substr(1, quoted.size() - 2) : std::string_view();
  if (!escaped) return inside;
  unescape(inside, buffer);
  return buffer;
}

}  // namespace

const char* to_text(JsonKind kind) {
  static constexpr EnumNames<JsonKind, 8> names{{"null", "true or false", "an integer", "a number",
                                                 "a string", "a list", "an object",
                                                 "an invalid value"}};
  return names[kind];
}

void add_node(JsonDocument& document, uint32_t parent, size_t begin, size_t key_begin,
              size_t key_end) {
  const auto index = static_cast<uint32_t>(document.nodes.size());
  JsonNode& made = document.nodes.emplace_back();
  made.begin = made.end = static_cast<uint32_t>(begin);
  made.key_begin = static_cast<uint32_t>(key_begin);
  made.key_end = static_cast<uint32_t>(key_end);
  made.next = index + 1;
  if (index == 0) return;
  made.parent = parent;
  made.ordinal = document.nodes[parent].count++;
}

std::string_view raw(const JsonDocument& document, const JsonNode& node) {
  return document.text.substr(node.begin, node.end - node.begin);
}

std::string_view string_of(const JsonDocument& document, const JsonNode& node,
                           std::string& buffer) {
  return resolved(raw(document, node), node.escaped, buffer);
}

std::string_view key_of(const JsonDocument& document, const JsonNode& node, std::string& buffer) {
  return resolved(document.text.substr(node.key_begin, node.key_end - node.key_begin),
                  node.key_escaped, buffer);
}

uint32_t find_key(const JsonDocument& document, uint32_t object, std::string_view key) {
  const JsonNode& node = document.nodes[object];
  if (node.kind != JsonKind::object) return 0;
  std::string buffer;
  for (uint32_t child = object + 1; child < node.next; child = document.nodes[child].next) {
    const JsonNode& member = document.nodes[child];
    if (!member.repeated && !member.keyless && key_of(document, member, buffer) == key)
      return child;
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
      pointer += std::to_string(node.ordinal);
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

std::vector<std::pair<uint32_t, uint32_t>> repeated_keys(const JsonDocument& document,
                                                         uint32_t object) {
  constexpr uint32_t few = 24;  // so few are compared by pairs, as they are written
  const JsonNode& node = document.nodes[object];
  const auto each = [&](const auto& take) {
    for (uint32_t child = object + 1; child < node.next; child = document.nodes[child].next) {
      take(child, document.nodes[child]);
    }
  };
  if (node.count <= few) {
    std::array<std::string_view, few> keys;
    uint32_t seen = 0;
    bool clash = false;
    each([&](uint32_t, const JsonNode& member) {
      const size_t length = member.key_end - member.key_begin;
      const std::string_view key = document.text.substr(member.key_begin, length);
      clash = clash || member.key_escaped;
      for (uint32_t i = 0; i < seen; ++i) clash = clash || keys[i] == key;
      keys[seen++] = key;
    });
    if (!clash) return {};
  }
  std::vector<std::pair<std::string, uint32_t>> sorted;
  sorted.reserve(node.count);
  std::string buffer;
  each([&](uint32_t child, const JsonNode& member) {
    if (!member.keyless) sorted.emplace_back(key_of(document, member, buffer), child);
  });
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<uint32_t, uint32_t>> repeated;
  for (size_t i = 1, first = 0; i < sorted.size(); ++i) {
    if (sorted[i].first != sorted[first].first) {
      first = i;
    } else {
      repeated.emplace_back(sorted[i].second, sorted[first].second);
    }
  }
  return repeated;
}

Place place_of(const JsonDocument& document, uint32_t index) {
  const JsonNode& node = document.nodes[index];
  return locate(document.text, document.file, node.begin, node.end, pointer_to(document, index),
                &document.last);
}

Place place_of_key(const JsonDocument& document, uint32_t index) {
  const JsonNode& node = document.nodes[index];
  return locate(document.text, document.file, node.key_begin, node.key_end,
                pointer_to(document, index), &document.last);
}

}  // namespace meshplan
