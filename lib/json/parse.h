// Accepts a JSON text or refuses it: nlohmann/json's parser, with what it lacks.
//
// nlohmann knows syntax, escapes and UTF-8, but keeps the last of keys given twice, turns integers
// from 2^64 on into fractions, skips a byte order mark and takes a zero byte for the end. Here such
// texts are refused, and numbers stay as written. Its events carry no positions: between two tokens
// stand only blanks, comments, commas and colons, so that each begins behind the one before it.
//
// Law: a text is accepted where nlohmann accepts it, keys are distinct in every object, and there
// is no zero byte, no byte order mark and no nesting beyond max_json_depth.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "json/document.h"

namespace meshplan {

struct JsonRules {
  bool comments = false;              // accepts // and /* */
  bool fractions = true;              // without: every number is an integer of 64 bits
  uint32_t most_values = UINT32_MAX;  // indices have 32 bits
};

// Why a text is refused, and the byte where that shows; no byte where it lies in several places
// (a key given twice).
struct JsonRefusal {
  std::string message;
  std::optional<size_t> byte;
};

// The text must outlive the document. Never recurses, never throws on any bytes.
[[nodiscard]] std::variant<JsonDocument, JsonRefusal> parse_json(std::string_view text,
                                                                 const JsonRules& rules);

// The same for a text whose tree would be too large: the elements of the list that is the root's
// member `list` go to `take` one after another, each in a document that holds besides it only what
// stands before the list. The document returned holds none of them.
using TakeElement = std::function<void(const JsonDocument& document, uint32_t element)>;
[[nodiscard]] std::variant<JsonDocument, JsonRefusal> parse_json_list(std::string_view text,
                                                                      const JsonRules& rules,
                                                                      std::string_view list,
                                                                      const TakeElement& take);

// "line 2, column 3" of a byte of the text.
[[nodiscard]] std::string line_and_column(std::string_view text, size_t byte);

}  // namespace meshplan
