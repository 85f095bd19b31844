// JSON with comments as a tree with positions: the first half of reading a spec.
//
//     {"a": [1, 2]} // note        nodes  0 object  1 "a": array (next 4)  2 integer  3 integer
//
// Nodes stand in the order of the text; the children of node i start at i + 1, and each one's sibling stands at its `next`. A node holds
// byte offsets, not values: numbers and strings are read from the text when they are asked for.
//
// Strict RFC 8259 except for // and /* */ comments. What is wrong is reported with its place and mended in the way a reader would (a
// missing comma is a comma), so that one run reports the whole file; only a structure that cannot be guessed ends it.
//
// What it is not: a check of meaning (spec/read_*.cc), nor a general JSON library: at most 64 MiB, 64 levels and 8,388,608 values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  bool repeated = false;     // its key stands before it in its object: reported already, readers skip it
  bool keyless = false;      // its key cannot be read: likewise
  uint32_t begin = 0;        // bytes of the value, quotes included
  uint32_t end = 0;
  uint32_t key_begin = 0;  // bytes of the key, quotes included; equal: not a member
  uint32_t key_end = 0;
  uint32_t next = 0;  // index of the node after this subtree
  uint32_t parent = 0;
  uint32_t count = 0;  // elements or members
};

struct JsonDocument {
  std::string_view text;
  std::string file;
  std::vector<JsonNode> nodes;
};

constexpr size_t max_json_bytes = size_t{64} << 20;
constexpr size_t max_json_depth = 64;
constexpr size_t max_json_values = size_t{1} << 23;

// Every problem of the text goes to `diagnostics`. No value: the structure is lost, nothing of the content can be judged. The text must
// outlive the document. Never recurses, never throws on any bytes.
[[nodiscard]] std::optional<JsonDocument> parse_json(std::string_view text, const std::string& file, Diagnostics& diagnostics);

// The string of a node or of its key, escapes resolved. `buffer` holds it where there are any.
[[nodiscard]] std::string_view string_of(const JsonDocument& document, const JsonNode& node, std::string& buffer);
[[nodiscard]] std::string_view key_of(const JsonDocument& document, const JsonNode& node, std::string& buffer);
// The value as written.
[[nodiscard]] std::string_view raw(const JsonDocument& document, const JsonNode& node);
// The member of an object with this key; 0 where there is none.
[[nodiscard]] uint32_t find_key(const JsonDocument& document, uint32_t object, std::string_view key);
// "/redistributions/0/src": the way to a node (RFC 6901).
[[nodiscard]] std::string pointer_to(const JsonDocument& document, uint32_t node);
// An integer within int64.
[[nodiscard]] std::optional<int64_t> integer_of(const JsonDocument& document, const JsonNode& node);

[[nodiscard]] Place place_of(const JsonDocument& document, uint32_t node);
[[nodiscard]] Place place_of_key(const JsonDocument& document, uint32_t node);

// The compact canonical JSON of the subtree: keys sorted by their bytes, UTF-8, no spaces, only the escapes that JSON demands, integers
// without a sign of zero, other numbers as the shortest decimal that reads back as the same double. What digests are over.
[[nodiscard]] std::string canonical_text(const JsonDocument& document, uint32_t node = 0);

}  // namespace meshplan
