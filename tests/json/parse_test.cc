// Laws of reading JSON: what is accepted, where values stand, and that the two ways to read a text
// agree.
#include "json/parse.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "json/scan.h"
#include "json/write.h"

namespace meshplan {
namespace {

using nlohmann::json;

constexpr JsonRules as_read{.comments = true};

bool accepted(const std::string& text, const JsonRules& rules = {}) {
  return std::holds_alternative<JsonDocument>(parse_json(text, rules));
}
std::string refusal(const std::string& text, const JsonRules& rules = {}) {
  const auto parsed = parse_json(text, rules);
  const auto* refused = std::get_if<JsonRefusal>(&parsed);
  if (refused == nullptr) return "";
  return refused->message + (refused->byte ? " at " + std::to_string(*refused->byte) : "");
}

// Whether nlohmann finds a key twice in one object.
bool has_repeated_keys(const std::string& text) {
  std::vector<std::vector<std::string>> open;
  bool repeated = false;
  const auto event = [&](int, json::parse_event_t kind, json& parsed) {
    if (kind == json::parse_event_t::object_start) open.emplace_back();
    if (kind == json::parse_event_t::object_end) open.pop_back();
    if (kind == json::parse_event_t::key) {
      auto& keys = open.back();
      repeated = repeated || std::count(keys.begin(), keys.end(), parsed.get<std::string>()) > 0;
      keys.push_back(parsed.get<std::string>());
    }
    return true;
  };
  const json unused = json::parse(text, event, false, true);
  (void)unused;
  return repeated;
}

TEST_CASE("a number that no double holds is told as one") {
  CHECK(refusal("[1, 1e400]") == "a number that is too large at 8");
  CHECK(refusal("[1, 1e308]").empty());
}

// Checks a text against nlohmann and against the scanner; whether it is accepted.
bool check_laws(const std::string& text) {
  INFO(text);
  const auto parsed = parse_json(text, as_read);
  const auto* document = std::get_if<JsonDocument>(&parsed);
  const bool plain = text.find('\0') == std::string::npos && text.substr(0, 3) != "\xEF\xBB\xBF";
  const bool known = json::accept(text, true) && !has_repeated_keys(text);
  Diagnostics diagnostics;
  const auto scanned = scan_json(text, "a.json", diagnostics);
  if (document == nullptr) {
    // Bytes that are not UTF-8 in comments, and nothing else, are no matter to nlohmann.
    const bool stray = !diagnostics.kept().empty() && diagnostics.kept()[0].code == "E0101";
    CHECK((!plain || !known || stray));
    return false;
  }
  CHECK((plain && known));
  REQUIRE(scanned);
  CHECK(diagnostics.empty());
  CHECK(document->nodes == scanned->nodes);
  // The canonical form says the same, and is its own.
  const std::string canonical = canonical_text(*document);
  CHECK(json::parse(canonical) == json::parse(text, nullptr, true, true));
  const auto again = parse_json(canonical, {});
  REQUIRE(std::holds_alternative<JsonDocument>(again));
  CHECK(canonical_text(std::get<JsonDocument>(again)) == canonical);
  return true;
}

}  // namespace

TEST_CASE("a text is accepted where nlohmann accepts it and no key is given twice") {
  for (const std::string text :
       {"{}", "[]", "0", "-0", "\"\"", "null", " [1, -2.5e3, true, false, null, \"a\\n\\u00e9\"] ",
        R"({"a": {"b": [{}, [], [[]]]}, "c": 1})", R"({"a": "\\", "b": "\"", "\\u0061": 1})", "// first\n[1, /* two */ 2] // last",
        "[/***/1/**//**/,//\n2]", "{\"a\"/**/:/**/1}", "[18446744073709551616, 1e5, 9223372036854775808]", "\"\xC3\xA9\"", "//\r1"}) {
    CHECK_MESSAGE(check_laws(text), text);
  }
  for (const std::string text : {"",
                                 " ",
                                 "{",
                                 "[1,]",
                                 "[1 2]",
                                 "{\"a\" 1}",
                                 "{\"a\": 1, \"a\": 2}",
                                 "nul",
                                 "01",
                                 "+1",
                                 "1.",
                                 "{\"a\": 1, \"\\u0061\": 2}",
                                 "\"\t\"",
                                 "\"\\x\"",
                                 "\"\\ud800\"",
                                 "/* [1]",
                                 "[1] 2",
                                 "#\n1",
                                 "\xFF",
                                 "\"\xED\xA0\x80\"",
                                 "\xEF\xBB\xBF{}"}) {
    CHECK_MESSAGE(!check_laws(text), text);
  }
  CHECK(!check_laws(std::string("{} \0 {}", 7)));
  CHECK(!check_laws("1 // \xFF\n"));
  CHECK(accepted("1e999") == json::accept("1e999"));  // beyond every double: read_json takes it
  CHECK(!accepted("[1] // comment"));
  CHECK(accepted("[1] // comment", {.comments = true}));
}

TEST_CASE("random texts of JSON's characters follow the same laws") {
  constexpr unsigned seed = 20261122;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::vector<std::string> words = {"{",           "}",  "[",  "]",   ",",   ":",    " ",    "\n",    "\"a\"", "\"b\\n\"",
                                          "\"\\u0061\"", "1",  "-2", "0.5", "1e3", "true", "null", "//x\n", "/*y*/", "\"\xC3\xA9\"",
                                          "\"",          "\\", "x",  "\r",  "\xC3"};
  size_t good = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    if (random() % 2 == 0) {  // a value with a little damage
      text = R"({"a": [1, {"b": "c\n"}, []], /**/ "d": {"e": -0.5, "f": null}, "g": [[true]]})";
      for (auto damage = random() % 3; damage > 0; --damage) {
        const size_t at = random() % text.size();
        if (random() % 2 == 0) text.erase(at, random() % 4);
        if (random() % 2 == 0) text.insert(at, words[random() % words.size()]);
      }
    } else {
      for (auto length = random() % 12; length > 0; --length) text += words[random() % words.size()];
    }
    good += check_laws(text) ? 1 : 0;
  }
  CHECK(good > 4000);
}

TEST_CASE("every value and key knows its place") {
  const std::string text = "{ \"a\" : [ 12 , \"x\\\"y\" /*,*/ , { } ] ,\n\"\\u0062\":-1.5e2, \"c\": false}";
  const auto parsed = parse_json(text, as_read);
  REQUIRE(std::holds_alternative<JsonDocument>(parsed));
  const auto& document = std::get<JsonDocument>(parsed);
  std::vector<std::string> values;
  for (const JsonNode& node : document.nodes) values.emplace_back(raw(document, node));
  CHECK(values == std::vector<std::string>{text, R"([ 12 , "x\"y" /*,*/ , { } ])", "12", R"("x\"y")", "{ }", "-1.5e2", "false"});
  CHECK(document.nodes[3].escaped);
  CHECK(document.nodes[5].key_escaped);
  CHECK(document.nodes[5].kind == JsonKind::number);
  CHECK(pointer_to(document, 4) == "/a/2");
  CHECK(place_of(document, 5).line == 2);
  CHECK(place_of(document, 5).column == 10);
  CHECK(place_of_key(document, 5).column == 1);
}

TEST_CASE("what is refused is named with its byte") {
  const JsonRules strict{.fractions = false};
  CHECK(refusal("[1, 18446744073709551616]", strict) == "the number 18446744073709551616 is not an integer of 64 bits at 4");
  CHECK(refusal("[1, 9223372036854775808]", strict) == "the number 9223372036854775808 does not fit 64 bits at 4");
  CHECK(refusal("[1.5]", strict) == "the number 1.5 is not an integer of 64 bits at 1");
  CHECK(refusal("[-9223372036854775808, 9223372036854775807]", strict).empty());
  CHECK(refusal(R"({"a": {"b": 1, "b": 2}})") == "the key \"b\" is given twice in one object");
  CHECK(refusal("[1,, 2]").find(" at 3") != std::string::npos);
  CHECK(refusal("[1, 2", {}).find(" at 5") != std::string::npos);
  CHECK(refusal(std::string(64, '[') + std::string(64, ']')).empty());
  CHECK(refusal(std::string(100'000, '[')) == "it is nested deeper than 64 levels at 64");
  CHECK(refusal("[1, 2, 3]", {.most_values = 3}) == "it has more than 3 values at 8");
  CHECK(line_and_column("ab\ncd", 4) == "line 2, column 2");
}

TEST_CASE("the elements of one list are handed over one at a time") {
  const std::string text = R"({"a": 1, "list": [{"x": [1, 2]}, 5, [[]]], "b": {"list": [7, 8]}, "c": [9]})";
  std::string seen;
  size_t most = 0;
  const auto parsed = parse_json_list(text, {}, "list", [&](const JsonDocument& document, uint32_t element) {
    seen += pointer_to(document, element) + "=" + canonical_text(document, element) + " ";
    most = std::max(most, document.nodes.size());
    CHECK(find_key(document, 0, "a") != 0);
    CHECK(find_key(document, 0, "b") == 0);
  });
  CHECK(seen == R"(/list/0={"x":[1,2]} /list/1=5 /list/2=[[]] )");
  CHECK(most == 7);  // the root, a, list and {"x": [1, 2]}
  REQUIRE(std::holds_alternative<JsonDocument>(parsed));
  const auto& rest = std::get<JsonDocument>(parsed);
  CHECK(canonical_text(rest) == R"({"a":1,"b":{"list":[7,8]},"c":[9],"list":[]})");
  CHECK(rest.nodes[find_key(rest, 0, "list")].count == 3);
  const auto twice = parse_json_list(R"({"list": [1], "list": [2]})", {}, "list", [](const JsonDocument&, uint32_t) {});
  CHECK(std::holds_alternative<JsonRefusal>(twice));
}

}  // namespace meshplan
