// Renders diagnostics for people and for tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "diag/diagnostic.h"

namespace meshplan {

enum class DiagnosticFormat : uint8_t { text, json, github, sarif };
[[nodiscard]] std::optional<DiagnosticFormat> parse_diagnostic_format(std::string_view text);

struct DiagnosticRendering {
  DiagnosticFormat format = DiagnosticFormat::text;
  bool color = false;        // text only
  std::string tool_version;  // sarif only
};

// All diagnostics in stable order, and a last line with the number omitted because of the cap.
// Without diagnostics, text and github are empty; json and sarif are always a complete document.
//
//   text    in the style of rustc: message, place, the line with carets, the second place, help
//   json    {"diagnostics": [...], "errors": n, "warnings": n, "left_out": n}, LF at the end
//   github  workflow commands (::error file=...,line=...): errors first, at most 10 of each kind
//   sarif   SARIF 2.1.0 with the rules that occur
[[nodiscard]] std::string render(const Diagnostics& diagnostics,
                                 const DiagnosticRendering& rendering);

// One diagnostic in text format.
[[nodiscard]] std::string render_text(const Diagnostic& diagnostic, bool color = false);

}  // namespace meshplan
