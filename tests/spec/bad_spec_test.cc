// Bad specs: exactly the expected codes, places and messages. MESHPLAN_RECORD=1 writes the expectations anew.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "spec/spec_files.h"

namespace meshplan {

TEST_CASE("every bad spec made by hand is refused as expected") {
  const auto files = json_files(std::filesystem::path(MESHPLAN_TESTDATA) / "bad-specs");
  CHECK(files.size() >= 100);
  for (const auto& path : files) {
    auto expected = path;
    check_recorded(expected.replace_extension(".expect"), refusal(path));
  }
}

// tests/spec/derive_bad_specs.py makes them, and expects one diagnostic at the place of each mistake.
TEST_CASE("every bad spec derived from a good one is refused at the place of its mistake") {
  const std::filesystem::path folder = MESHPLAN_DERIVED;
  std::istringstream expectations(read_text(folder / "expected.txt"));
  size_t files = 0;
  for (std::string expected; std::getline(expectations, expected); ++files) {
    const std::string said = refusal(folder / expected.substr(0, expected.find(':')));
    const bool one = std::count(said.begin(), said.end(), '\n') == 1;
    CHECK_MESSAGE((one && said.substr(0, expected.size() + 1) == expected + ":"), "expected " << expected << " and the reader says\n"
                                                                                              << said);
  }
  CHECK(files >= 200);
  CHECK(files == json_files(folder).size());
}

TEST_CASE("every good spec is accepted") {
  const auto files = json_files(std::filesystem::path(MESHPLAN_TESTDATA) / "good-specs");
  CHECK(files.size() >= 5);
  for (const auto& path : files) {
    Diagnostics diagnostics;
    CHECK_MESSAGE(read_spec(read_text(path), path.string(), reader_beside(path), diagnostics), diagnostics_text(diagnostics));
    CHECK(diagnostics.empty());
  }
}

}  // namespace meshplan
