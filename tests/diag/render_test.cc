// Diagnostics as text, JSON, GitHub annotations and SARIF.
#include "diag/render.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace meshplan {
namespace {

using Json = nlohmann::json;

const std::string source = "{\n  \"size\": 2,\n  \"größe\": 1,\n  \"size\": 4\n}\n";

Diagnostic sample() {
  Diagnostic diagnostic;
  diagnostic.code = "E0110";
  diagnostic.place = locate(source, "spec.json", source.rfind("\"size\""), source.rfind("\"size\"") + 6, "/mesh");
  diagnostic.message = "key \"size\" is given twice";
  diagnostic.second = SecondPlace{locate(source, "spec.json", 4, 10), "first given here"};
  diagnostic.help = "keep one of them";
  diagnostic.fix = Fix{"", true};
  return diagnostic;
}

Diagnostic numbered(size_t i, Severity severity, int64_t weight) {
  Diagnostic diagnostic;
  diagnostic.code = severity == Severity::error ? "E0201" : "W0301";
  diagnostic.severity = severity;
  diagnostic.place = locate(source, "a,b:c.json", i, i + 1);
  diagnostic.message = "number " + std::to_string(i) + " is 100% wrong\nand so on";
  diagnostic.weight = weight;
  return diagnostic;
}

std::string rendered(const Diagnostics& diagnostics, DiagnosticFormat format) { return render(diagnostics, {format, false, "1.2.3"}); }

size_t lines_with(const std::string& text, const std::string& start) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) count += text.compare(at, start.size(), start) == 0;
  return count;
}

}  // namespace

TEST_CASE("text shows the line, carets, the second place in the order of the file, and help") {
  CHECK(render_text(sample()) ==
        "error[E0110]: key \"size\" is given twice\n"
        " --> spec.json:4:3 (/mesh)\n"
        "2 |   \"size\": 2,\n"
        "  |   ------ first given here\n"
        "4 |   \"size\": 4\n"
        "  |   ^^^^^^\n"
        "  = help: keep one of them\n");
  Diagnostic whole;
  whole.code = "E0109";
  whole.place = whole_file("-");
  whole.message = "the file is too large";
  CHECK(render_text(whole) == "error[E0109]: the file is too large\n --> -\n");
}

TEST_CASE("colour comes only when asked for") {
  CHECK(render_text(sample()).find('\x1b') == std::string::npos);
  const std::string colored = render_text(sample(), true);
  CHECK(colored.find("\x1b[1;31merror[E0110]\x1b[0m") == 0);
  std::string stripped;
  for (size_t i = 0; i < colored.size(); ++i) {
    if (colored[i] == '\x1b') {
      i = colored.find('m', i);
    } else {
      stripped += colored[i];
    }
  }
  CHECK(stripped == render_text(sample()));
}

TEST_CASE("text ends with what the cap left out and the counts") {
  Diagnostics diagnostics(1);
  CHECK(rendered(diagnostics, DiagnosticFormat::text).empty());
  diagnostics.add(sample());
  CHECK(rendered(diagnostics, DiagnosticFormat::text) == render_text(sample()) + "\n");
  diagnostics.add(numbered(0, Severity::error, 0));
  diagnostics.add(numbered(0, Severity::warning, 0));
  const std::string text = rendered(diagnostics, DiagnosticFormat::text);
  CHECK(text.substr(text.find("and 1")) == "and 1 more error\n2 errors, 1 warning\n");
}

TEST_CASE("JSON holds all of it") {
  Diagnostics diagnostics;
  CHECK(Json::parse(rendered(diagnostics, DiagnosticFormat::json)) ==
        Json{{"diagnostics", Json::array()}, {"errors", 0}, {"warnings", 0}, {"left_out", 0}});
  diagnostics.add(sample());
  const Json json = Json::parse(rendered(diagnostics, DiagnosticFormat::json));
  CHECK(json["errors"] == 1);
  const Json& one = json["diagnostics"][0];
  CHECK(one["code"] == "E0110");
  CHECK(one["severity"] == "error");
  CHECK(one["place"] == Json{{"file", "spec.json"},
                             {"line", 4},
                             {"column", 3},
                             {"end_line", 4},
                             {"end_column", 9},
                             {"begin", 33},
                             {"end", 39},
                             {"pointer", "/mesh"}});
  CHECK(one["second"]["label"] == "first given here");
  CHECK(one["second"]["place"]["line"] == 2);
  CHECK(one["help"] == "keep one of them");
  CHECK(one["fix"] == Json{{"text", ""}, {"applicable", true}});
}

TEST_CASE("GitHub gets at most ten of a kind, the weightiest first, and the number of the others") {
  Diagnostics diagnostics;
  for (size_t i = 0; i < 15; ++i) diagnostics.add(numbered(i, Severity::error, 0));
  for (size_t i = 0; i < 12; ++i) diagnostics.add(numbered(i, Severity::warning, static_cast<int64_t>(i)));
  const std::string text = rendered(diagnostics, DiagnosticFormat::github);
  CHECK(lines_with(text, "::error ") == 10);
  CHECK(lines_with(text, "::warning ") == 10);
  CHECK(text.find("::error file=a%2Cb%3Ac.json,line=1,col=1,endLine=1,endColumn=2,title=E0201::number 0 is 100%25 wrong%0Aand so on\n") ==
        0);
  CHECK(text.substr(text.find("::warning ")).find("number 11 ") < text.substr(text.find("::warning ")).find("number 10 "));
  CHECK(text.find("number 1 is") < text.find("::warning "));
  CHECK(text.substr(text.find("::notice")) == "::notice title=meshplan::5 more errors, 2 more warnings\n");
  Diagnostics few;
  few.add(sample());
  CHECK(rendered(few, DiagnosticFormat::github) ==
        "::error file=spec.json,line=4,col=3,endLine=4,endColumn=9,title=E0110::key \"size\" is given twice%0Ahelp: keep one of them\n");
}

TEST_CASE("SARIF has the rules that occur and their places") {
  Diagnostics diagnostics;
  diagnostics.add(sample());
  diagnostics.add(numbered(0, Severity::warning, 0));
  const Json run = Json::parse(rendered(diagnostics, DiagnosticFormat::sarif))["runs"][0];
  CHECK(run["tool"]["driver"]["version"] == "1.2.3");
  REQUIRE(run["tool"]["driver"]["rules"].size() == 2);
  CHECK(run["tool"]["driver"]["rules"][0]["id"] == "E0110");
  CHECK(run["tool"]["driver"]["rules"][0]["name"] == "duplicate_key");
  CHECK(run["columnKind"] == "unicodeCodePoints");
  REQUIRE(run["results"].size() == 2);
  CHECK(run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%2Cb%3Ac.json");
  const Json& twice = run["results"][1];
  CHECK(twice["ruleId"] == "E0110");
  CHECK(twice["level"] == "error");
  CHECK(twice["locations"][0]["physicalLocation"]["region"]["startColumn"] == 3);
  CHECK(twice["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 2);
  CHECK(Json::parse(rendered(Diagnostics(), DiagnosticFormat::sarif))["runs"][0]["results"].empty());
}

TEST_CASE("a problem of the command line has no place") {
  Diagnostics diagnostics;
  Diagnostic usage = numbered(0, Severity::error, 0);
  usage.place = {};
  diagnostics.add(usage);
  CHECK(rendered(diagnostics, DiagnosticFormat::github).rfind("::error title=E0201::number 0 is", 0) == 0);
  const Json run = Json::parse(rendered(diagnostics, DiagnosticFormat::sarif))["runs"][0];
  REQUIRE(run["results"].size() == 1);
  CHECK_FALSE(run["results"][0].contains("locations"));
}

TEST_CASE("formats are known by name") {
  CHECK(parse_diagnostic_format("sarif") == DiagnosticFormat::sarif);
  CHECK_FALSE(parse_diagnostic_format("xml"));
}

}  // namespace meshplan
