// What every command shows: colours, widths, and no text of a file as it is.
#include <doctest/doctest.h>

#include "base/text.h"
#include "base/utf8.h"
#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

TEST_CASE("colours follow the flag, then NO_COLOR, then the terminal") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  const auto colored = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"show", "plan.json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(system, words).out.find('\x1b') != std::string::npos;
  };
  CHECK(!colored({}));
  CHECK(colored({"--color", "always"}));
  system.terminals = {Stream::out};
  CHECK(colored({}));
  CHECK(!colored({"--color", "never"}));
  system.variables["NO_COLOR"] = "1";
  CHECK(!colored({}));
  CHECK(colored({"--color=always"}));
}

TEST_CASE("tables fit the terminal and keep to ASCII where the locale does") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  system.terminals = {Stream::out};
  system.variables["NO_COLOR"] = "1";
  std::istringstream lines(run(system, {"show", "plan.json"}).out);
  std::string line;
  size_t rows = 0;
  while (std::getline(lines, line) && !line.empty()) ++rows;
  while (std::getline(lines, line) && !line.empty()) {
    CHECK(line.size() <= 80);
    CHECK(std::all_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
    ++rows;
  }
  CHECK(rows > 5);
}

// Whether the text has a control character other than its line ends, or a line that GitHub would
// take for a command and that is not ours.
std::string harm_in(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return "a stray byte at " + std::to_string(at);
    if (text[at] != '\n' && is_control(text, at, length)) return "a control character at " + std::to_string(at);
    at += length;
  }
  return text.find("\n::error::forged") == std::string::npos && text.rfind("::error::forged", 0) != 0 ? "" : "a forged line";
}

TEST_CASE("names from a file reach no terminal and no log as they are") {
  const std::string evil = R"~(\u001b[2Jx\n::error::forged\r\u0007\u009b1m\u202e)~";
  const auto hostile = [&](const std::string& extent) {
    return R"~({"schema": "meshplan/spec/1", "meshes": [{"name": "m)~" + evil +
           R"~(", "world": 4, "dims": [
      {"name": "a)~" +
           evil + R"~(", "size": 2}, {"name": "b)~" + evil + R"~(", "size": 2}]}],
      "topology": {"name": "t)~" +
           evil + R"~(", "levels": [{"name": "l)~" + evil +
           R"~(", "ranks": 4, "gb_per_s": 1, "latency_ns": 1}]},
      "redistributions": [{"id": "i)~" +
           evil + R"~(", "mesh": "m)~" + evil + R"~(", "tensor": {"shape": [)~" + extent +
           R"~(], "dtype": "float32"},
      "src": ["P(sum)", "P(sum)"], "dst": ["R", "R"]},
      {"id": "j)~" +
           evil + R"~(", "mesh": "m)~" + evil + R"~(", "tensor": {"shape": [8], "dtype": "float32"},
      "src": ["S(0)", "R"], "dst": ["R", "S(0)"]}],
      "budgets": {"redistributions": [{"id": "i)~" +
           evil + R"~(", "wire_bytes": 0}]},
      "bundles": [{"id": "k)~" +
           evil + R"~(", "redistributions": ["j*"], "max_staging_bytes": 16}]})~";
  };
  FakeSystem system;
  system.files["spec.json"] = hostile("8");
  system.files["other.json"] = hostile("16");
  system.files["bad.json"] = hostile("\"" + evil + "\"");
  REQUIRE(run(system, {"plan", "spec.json", "-o", "plan.json", "--alternatives", "2", "--audit"}).code == 0);
  std::vector<std::vector<std::string>> commands = {
      {"plan", "spec.json", "-o", "again.json", "--max-groups", "1", "--groups", "any", "--verbose"},
      {"plan", "bad.json"},
      {"show", "plan.json", "--id", "i\x1b[1m\n::error::forged"},
      {"show", "plan.json", "--id",
       "j\x1b[2Jx\n::error::forged\r\a\xc2\x9b"
       "1m\xe2\x80\xae"},
      {"explain", "plan.json"},
      {"explain", "plan.json",
       "i\x1b[2Jx\n::error::forged\r\a\xc2\x9b"
       "1m\xe2\x80\xae"},
      {"check", "spec.json", "plan.json"},
      {"check", "other.json", "plan.json", "--junit", "-"},
      {"verify", "plan.json"},
      {"run", "plan.json"},
      {"run", "plan.json", "--inject", "0:1:flip"},
      {"run", "plan.json", "--measure", "--repeat", "2"},
      {"run", "plan.json", "--against", "plan.json", "--repeat", "2"},
      {"mesh", "spec.json", "--ranks"},
      {"plan", "\x1b[2Jx\n::error::forged"},
      {"pl\x1b[2J\n::error::forged"},
  };
  for (const char* format : {"text", "markdown", "torch", "svg", "html", "mermaid", "dot"}) {
    for (const char* detail : {"summary", "full"}) commands.push_back({"show", "plan.json", "--format", format, "--detail", detail});
  }
  for (const char* format : {"text", "markdown", "github"}) {
    commands.push_back({"diff", "spec.json", "other.json", "--format", format, "--detail", "full"});
  }
  for (const std::vector<std::string>& words : commands) {
    for (const char* diagnostics : {"text", "github"}) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--diagnostics", diagnostics});
      const std::string command = join(all, " ");
      CAPTURE(command);
      const Answer answer = run(system, all);
      CHECK(answer.code != 70);
      CHECK(harm_in(answer.out) == "");
      CHECK(harm_in(answer.err) == "");
      CHECK(!(answer.out + answer.err).empty());
    }
  }
}

}  // namespace
}  // namespace meshplan
