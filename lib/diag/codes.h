// The codes of diagnostics, numbered by phase and never reused.
//
//     E01xx  the text of a file: bytes, syntax, nesting, keys given twice
//     E02xx  the form of a spec: keys, types, ranges, names of choices
//     E03xx  meshes: sizes, ranks, dims, flattens, views
//     E04xx  redistributions: placements, orders, tensors, budgets, silenced warnings
//     E05xx  plan files            E06xx  the command line            N07xx  no plan exists
//     W03xx  warnings of the planners and of recordings
//     W08xx  changes that a diff reports                A04xx  audit findings
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshplan {

struct CodeEntry {
  std::string code;  // "E0203"
  // "unknown_key": what -W takes for a warning, and the name of a SARIF rule
  std::string name;
  std::string title;        // one line
  std::string explanation;  // one paragraph
  std::string failing;      // a spec or a command line that causes the diagnostic
  std::string fixed;        // the corrected spec or command line
  // command that reports the code for a spec; empty: `meshplan plan spec.json`
  std::string command = {};
};

// Ascending by code.
[[nodiscard]] const std::vector<CodeEntry>& code_table();
[[nodiscard]] const CodeEntry* find_code(std::string_view code);

// Whether -W and "allow" know it: a warning of the planners, of recordings or of reading.
[[nodiscard]] bool may_be_silenced(std::string_view code);
// "one-copy" of "W0305": a warning as -W takes it.
[[nodiscard]] std::string warning_kind(std::string_view code);
// Of all that may be silenced, in the order of their codes.
[[nodiscard]] std::vector<std::string> warning_kinds();

// What `meshplan explain CODE` prints: title, explanation, a failing and a fixed example. Case is
// ignored.
[[nodiscard]] std::optional<std::string> explain_code(std::string_view code);

}  // namespace meshplan
