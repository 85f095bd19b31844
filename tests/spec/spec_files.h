// Files of testdata/ and what the reader says of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "spec/spec.h"

namespace meshplan {

[[nodiscard]] std::string read_text(const std::filesystem::path& path);
// The *.json of a folder, by name, folders below it apart.
[[nodiscard]] std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder);
// Reads files named in a spec from the spec's folder.
[[nodiscard]] FileReader reader_beside(const std::filesystem::path& spec);
// One line a diagnostic: "spec.json:3:5: E0203: message"; files by name, without their folders.
[[nodiscard]] std::string diagnostics_text(const Diagnostics& diagnostics);
// The diagnostics of a bad spec; fails the test where it is accepted.
[[nodiscard]] std::string refusal(const std::filesystem::path& path);
// Compares with the file, or writes it where MESHPLAN_RECORD is set.
void check_recorded(const std::filesystem::path& path, const std::string& text);

}  // namespace meshplan
