#include "spec/spec_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace meshplan {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in, "cannot open " << path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

FileReader reader_beside(const std::filesystem::path& spec) {
  return [folder = spec.parent_path()](const std::string& path) -> Result<std::string> {
    if (!std::filesystem::exists(folder / path)) return bad_input("cannot read " + path + ": No such file or directory");
    return read_text(folder / path);
  };
}

std::string diagnostics_text(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) {
    text += std::filesystem::path(diagnostic.place.file).filename().string() + ":" + std::to_string(diagnostic.place.line) + ":" +
            std::to_string(diagnostic.place.column) + ": " + diagnostic.code + ": " + diagnostic.message + "\n";
  }
  return text;
}

std::string refusal(const std::filesystem::path& path) {
  Diagnostics diagnostics;
  const std::string text = read_text(path);
  const auto spec = read_spec(text, path.filename().string(), reader_beside(path), diagnostics);
  CHECK_MESSAGE(!spec.has_value(), path.string() << " is accepted");
  CHECK_MESSAGE(diagnostics.has_errors(), path.string() << " is refused without an error");
  return diagnostics_text(diagnostics);
}

void check_recorded(const std::filesystem::path& path, const std::string& text) {
  if (std::getenv("MESHPLAN_RECORD") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  CHECK_MESSAGE(read_text(path) == text, path.string() << " expects\n" << read_text(path) << "and the reader says\n" << text);
}

}  // namespace meshplan
