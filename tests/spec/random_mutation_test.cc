// Good specs with random damage: whatever the bytes, the reader ends, blames a place inside the file, and accepts nothing that it also
// refuses.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "diag/render.h"
#include "spec/spec_files.h"

namespace meshplan {
namespace {

using Random = std::mt19937_64;

size_t below(Random& random, size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random() % bound); }

// Cuts, copies, moves, replaces bytes and inserts words that the grammar knows.
std::string damaged(std::string text, const std::string& other, Random& random) {
  static const std::vector<std::string> words = {"{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 ",",
                                                 ":",
                                                 "\"",
                                                 "null",
                                                 "-1",
                                                 "1e3",
                                                 "\\ud800",
                                                 "\xff",
                                                 "//",
                                                 "/*",
                                                 "*/",
                                                 "9223372036854775807",
                                                 "\"x-\"",
                                                 "\"S(0)\"",
                                                 "\"P(max)\"",
                                                 "\"SS(0,2)\"",
                                                 "{}",
                                                 "\"any\"",
                                                 std::string(1, '\0'),
                                                 "\"dims\": []"};
  const size_t times = 1 + below(random, 6);
  for (size_t i = 0; i < times; ++i) {
    const size_t at = below(random, text.size() + 1);
    const size_t length = below(random, std::min<size_t>(text.size() - at, 40) + 1);
    switch (below(random, 6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, words[below(random, words.size())]);
        break;
      case 2:
        text.replace(at, length, words[below(random, words.size())]);
        break;
      case 3:
        text.insert(at, text.substr(below(random, text.size() + 1), 60));
        break;
      case 4:
        text.insert(at, other.substr(below(random, other.size() + 1), 200));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random() % 256);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("damaged specs are refused with places, or are good") {
  const char* given = std::getenv("MESHPLAN_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20251121;
  MESSAGE("seed " << seed);
  Random random(seed);
  std::vector<std::string> texts;
  size_t good_texts = 0;  // which come first
  for (const char* folder : {"good-specs", "bad-specs"}) {
    good_texts = texts.size();
    for (const auto& path : json_files(std::filesystem::path(MESHPLAN_TESTDATA) / folder)) texts.push_back(read_text(path));
  }
  size_t good = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text =
        damaged(texts[below(random, round % 2 == 0 ? good_texts : texts.size())], texts[below(random, texts.size())], random);
    Diagnostics diagnostics;
    const auto spec = read_spec(text, "a.json", {}, diagnostics);
    INFO("round " << round << ":\n" << text);
    REQUIRE(spec.has_value() == !diagnostics.has_errors());
    good += spec.has_value() ? 1 : 0;
    for (const Diagnostic& diagnostic : diagnostics.kept()) {
      const Place& place = diagnostic.place;
      REQUIRE(place.begin <= place.end);
      REQUIRE(static_cast<size_t>(place.end) <= text.size());
      REQUIRE((place.line >= 1 && place.column >= 1));
      REQUIRE(diagnostic.message.find('\n') == std::string::npos);
    }
    for (const DiagnosticFormat format :
         {DiagnosticFormat::text, DiagnosticFormat::json, DiagnosticFormat::github, DiagnosticFormat::sarif}) {
      REQUIRE((spec.has_value() || !render(diagnostics, {format, false, ""}).empty()));
    }
  }
  CHECK(good > 0);
}

}  // namespace meshplan
