// "extends": finds the file that an overlay adds to.
//
//     specs/step.json   {"extends": "../recorded/step.json", ...}   ->   specs/../recorded/step.json
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/reader.h"
#include "spec/spec.h"

namespace meshplan {

// "specs/" of "specs/step.json", "" of "step.json", "git:main:" of "git:main:step.json": what names
// in the file are relative to.
[[nodiscard]] std::string folder_of(const std::string& path);

constexpr size_t max_extending_files = 8;  // that lead to one another

// A file of a spec while it is read.
struct SpecFile {
  std::string name;                // in places; "-": a text that is in no folder
  FileReader read_file;            // of names relative to its folder
  std::vector<std::string> chain;  // the files that led here, and this one, to tell them apart
};
[[nodiscard]] SpecFile outermost_file(const std::string& name, const FileReader& read_file);

struct ExtendedFile {
  SpecFile file;
  std::shared_ptr<const std::string> text;
};
// What the text at `index`, the value of "extends" in `from`, names. No value: reported.
[[nodiscard]] std::optional<ExtendedFile> open_extended(Reader& reader, uint32_t index,
                                                        const SpecFile& from);

}  // namespace meshplan
