// A JSON text as a table of its values with their places: what every reader of the project reads.
//
//     {"a": [1, 2]} // note        nodes  0 object  1 "a": array (next 4)  2 integer  3 integer
//
// Nodes stand in the order of the text; the children of node i start at i + 1, and each one's
// sibling stands at its `next`. A node holds byte offsets, not values: numbers and strings are read
// from the text when they are asked for.
//
// What it is not: a check of syntax (json/parse.h accepts a text or refuses it, json/scan.h lists
// what is wrong with one) or of meaning (json/reader.h collects problems, json/value.h ends at the
// first).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diag/diagnostic.h"

namespace meshplan {

enum class JsonKind : uint8_t {
  null,
  boolean,
  integer,  // digits and a sign only, of any length
  number,   // with a fraction or an exponent
  string,
  array,
  object,
  broken  // reported already; readers skip it
};
// "an object", "an integer": for messages.
[[nodiscard]] const char* to_text(JsonKind kind);

struct JsonNode {
  JsonKind kind = JsonKind::null;
  bool escaped = false;      // a string with a backslash
  bool key_escaped = false;  // a key with one
  bool truth = false;        // of a boolean
  // Its object has its key twice, or its key cannot be read: reported already, readers skip it.
  bool repeated = false;
  bool keyless = false;
  uint32_t begin = 0;  // bytes of the value, quotes included
  uint32_t end = 0;
  uint32_t key_begin = 0;  // bytes of the key, quotes included; equal: not a member
  uint32_t key_end = 0;
  uint32_t next = 0;  // index of the node after this subtree
  uint32_t parent = 0;
  uint32_t ordinal = 0;  // how many elements or members of its parent stand before it
  uint32_t count = 0;    // elements or members
  bool operator==(const JsonNode&) const = default;
};

struct JsonDocument {
  std::string_view text;
  std::string file;
  std::vector<JsonNode> nodes;
  mutable LastPlace last;  // that was asked for: readers go through a text from its start
};

constexpr size_t max_json_depth = 64;

// Appends a value that begins at byte `begin`, the next child of `parent` (of node 0: itself).
void add_node(JsonDocument& document, uint32_t parent, size_t begin, size_t key_begin,
              size_t key_end);

// The string of a node or of its key, escapes resolved. `buffer` holds it where there are any.
[[nodiscard]] std::string_view string_of(const JsonDocument& document, const JsonNode& node,
                                         std::string& buffer);
[[nodiscard]] std::string_view key_of(const JsonDocument& document, const JsonNode& node,
                                      std::string& buffer);
// The value as written.
[[nodiscard]] std::string_view raw(const JsonDocument& document, const JsonNode& node);
// The member of an object with this key; 0 where there is none.
[[nodiscard]] uint32_t find_key(const JsonDocument& document, uint32_t object,
                                std::string_view key);
// "/redistributions/0/src": the way to a node (RFC 6901).
[[nodiscard]] std::string pointer_to(const JsonDocument& document, uint32_t node);
// An integer within int64.
[[nodiscard]] std::optional<int64_t> integer_of(const JsonDocument& document, const JsonNode& node);

// Members of an object whose key stands before them in it, by key, each with the first of that key.
// Keys are compared by what they mean, escapes resolved; those that cannot be read are left out.
[[nodiscard]] std::vector<std::pair<uint32_t, uint32_t>> repeated_keys(const JsonDocument& document,
                                                                       uint32_t object);

[[nodiscard]] Place place_of(const JsonDocument& document, uint32_t node);
[[nodiscard]] Place place_of_key(const JsonDocument& document, uint32_t node);

}  // namespace meshplan
