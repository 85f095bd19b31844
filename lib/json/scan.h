// Reads a text that a person wrote, with comments and with mistakes.
//
// A text that json/parse.h accepts is read by it. Only where it refuses, the scanner goes through
// the text: what is wrong is reported with its place and mended in the way a reader would (a
// missing comma is a comma), so that one run reports the whole file; only a structure that cannot
// be guessed ends it.
//
// Law: of a text that parse_json accepts, scan_json makes the same nodes and reports nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "json/document.h"

namespace meshplan {

constexpr size_t max_json_bytes = size_t{64} << 20;
constexpr uint32_t max_json_values = uint32_t{1} << 23;

// Strict RFC 8259 except for // and /* */ comments, of at most 64 MiB, 64 levels and 8,388,608
// values. Every problem of the text goes to `diagnostics`. No value: the structure is lost, nothing
// of the content can be judged. The text must outlive the document. Never recurses, never throws on
// any bytes.
[[nodiscard]] std::optional<JsonDocument> read_json(std::string_view text, const std::string& file,
                                                    Diagnostics& diagnostics);

// The scanner alone.
[[nodiscard]] std::optional<JsonDocument> scan_json(std::string_view text, const std::string& file,
                                                    Diagnostics& diagnostics);

}  // namespace meshplan
