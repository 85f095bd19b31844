// JSON as plan files use it: integers, strings, bools, null, lists and objects; no fractions.
//
// Reading keeps every key, sorted, and is strict about what would make one text mean two things: keys given twice, numbers outside of
// int64, bytes that are not UTF-8, nesting beyond `json_max_depth`.
//
// Law: append_json of parse_json(t) is the same for every formatting of the same content.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace meshplan {

constexpr size_t json_max_depth = 64;

struct Json;
using JsonList = std::vector<Json>;
struct JsonMember;                           // a struct, since clang 14 looks into a pair before Json is complete
using JsonObject = std::vector<JsonMember>;  // ascending by key, each once

struct Json {
  std::variant<std::monostate, bool, int64_t, std::string, JsonList, JsonObject> value;
};

struct JsonMember {
  std::string first;
  Json second;
};

// The member of an object; nullptr where there is none or `json` is no object.
[[nodiscard]] const Json* find_member(const Json& json, std::string_view key);

// Why a text is no such JSON, and the byte where that shows; no byte where it lies in several places (a key given twice).
struct JsonRefusal {
  std::string message;
  std::optional<size_t> byte;
};
[[nodiscard]] std::variant<Json, JsonRefusal> parse_json(std::string_view text);
// "line 2, column 3" of a byte of the text.
[[nodiscard]] std::string line_and_column(std::string_view text, size_t byte);

// Compact, keys ascending.
void append_json(std::string& out, const Json& json);
// The text in quotes, escaped as little as JSON allows.
void append_json_text(std::string& out, std::string_view text);

}  // namespace meshplan
