// Every code that reading gives has an example that gives it and one that does not, and no other code is given.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>

#include "diag/codes.h"
#include "diag/outcome_codes.h"
#include "spec/spec_files.h"

namespace meshplan {
namespace {

std::multiset<std::string> codes_of(const std::string& text) {
  Diagnostics diagnostics;
  const FileReader no_files = [](const std::string&) -> Result<std::string> { return bad_input("no such file"); };
  const auto spec = read_spec(text, "spec.json", no_files, diagnostics);
  CHECK(spec.has_value() == !diagnostics.has_errors());
  std::multiset<std::string> codes;
  for (const Diagnostic& diagnostic : diagnostics.kept()) codes.insert(diagnostic.code);
  for (const Diagnostic& warning : spec ? spec->warnings : std::vector<Diagnostic>{}) codes.insert(warning.code);
  return codes;
}

bool of_reading(const std::string& code) { return code >= "E0101" && code <= "E0499"; }
bool warned_by_reading(const std::string& code) { return code == code_outermost_ranks; }

}  // namespace

TEST_CASE("the examples of a code: the failing one gives it and nothing else, the fixed one gives nothing") {
  for (const CodeEntry& entry : code_table()) {
    if (!of_reading(entry.code) && !warned_by_reading(entry.code)) continue;
    INFO(entry.code);
    if (entry.failing.front() != '{' && entry.failing.front() != '\xEF') continue;  // a command line: tests/explain runs it
    const std::multiset<std::string> codes = codes_of(entry.failing);
    CHECK(codes.count(entry.code) == codes.size());
    CHECK_FALSE(codes.empty());
    CHECK(codes_of(entry.fixed).empty());
  }
}

TEST_CASE("examples of what planning finds are good specs") {
  for (const CodeEntry& entry : code_table()) {
    if (of_reading(entry.code) || warned_by_reading(entry.code) || entry.failing.empty() || entry.failing.front() != '{') continue;
    INFO(entry.code);
    CHECK(codes_of(entry.failing).empty());
    CHECK(codes_of(entry.fixed).empty());
  }
}

TEST_CASE("every code of reading stands in a golden case, and golden cases hold no other code") {
  std::map<std::string, size_t> seen;
  const auto folder = std::filesystem::path(MESHPLAN_TESTDATA) / "bad-specs";
  for (const auto& path : json_files(folder)) {
    auto expected = path;
    const std::string text = read_text(expected.replace_extension(".expect"));
    for (size_t at = text.find(": E"); at != std::string::npos; at = text.find(": E", at + 1)) ++seen[text.substr(at + 2, 5)];
  }
  ++seen["E0109"];  // document_test.cc: no file of 64 MiB is kept
  for (const CodeEntry& entry : code_table()) {
    if (of_reading(entry.code)) CHECK_MESSAGE(seen.count(entry.code) == 1, entry.code << " stands in no testdata/bad-specs/*.expect");
  }
  for (const auto& held : seen) CHECK_MESSAGE(find_code(held.first) != nullptr, held.first << " is in no table");
}

}  // namespace meshplan
