#include "spec/extended_file.h"

#include <algorithm>
#include <filesystem>

#include "base/utf8.h"

namespace meshplan {
namespace {

constexpr const char* bad_extends = "E0213";

std::string beside(const std::string& folder, const std::string& name) {
  return name.front() == '/' ? name : folder + name;
}

// "a/../b.json" and "b.json" are one file; where links make two of one, the length of the chain
// ends what goes round.
std::string normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

}  // namespace

std::string folder_of(const std::string& path) {
  size_t last = path.rfind('/');
  if (last == std::string::npos && path.rfind("git:", 0) == 0) last = path.rfind(':');
  return last == std::string::npos ? std::string() : path.substr(0, last + 1);
}

SpecFile outermost_file(const std::string& name, const FileReader& read_file) {
  return {name, read_file, {normal(name)}};
}

std::optional<ExtendedFile> open_extended(Reader& reader, uint32_t index, const SpecFile& from) {
  const auto name = reader.name(index, "\"extends\"");
  if (!name) return std::nullopt;
  const std::string shown = printable(*name, 300);
  if (from.name == "-" && name->front() != '/') {
    reader.error(
        bad_extends, index,
        "\"extends\" is relative to the folder of its file, and this text is not in a file",
        {"give the spec by its file, or an absolute path here", {}, 0, {}});
    return std::nullopt;
  }
  ExtendedFile extended;
  SpecFile& file = extended.file;
  file.name = beside(folder_of(from.name), *name);
  file.chain = from.chain;
  const std::string known = normal(file.name);
  if (std::find(file.chain.begin(), file.chain.end(), known) != file.chain.end()) {
    reader.error(bad_extends, index,
                 known == file.chain.back()
                     ? "the file extends itself"
                     : shown + " extends this file, directly or through others");
    return std::nullopt;
  }
  if (file.chain.size() == max_extending_files) {
    reader.error(bad_extends, index,
                 "more than " + std::to_string(max_extending_files) +
                     " files extend one another; this is the last one read");
    return std::nullopt;
  }
  file.chain.push_back(known);
  const Result<std::string> text =
      from.read_file ? from.read_file(*name)
                     : Result<std::string>(bad_input("no files can be read here"));
  if (!text) {
    reader.error(bad_extends, index, printable(text.error().message, 300));
    return std::nullopt;
  }
  file.read_file = [outer = from.read_file, folder = folder_of(*name)](const std::string& path) {
    return outer(path.empty() ? path : beside(folder, path));
  };
  extended.text = std::make_shared<const std::string>(*text);
  return extended;
}

}  // namespace meshplan
