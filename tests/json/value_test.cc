// Values of files that programs write: the first problem ends the reading, with its place.
#include "json/value.h"

#include <doctest/doctest.h>

#include <functional>

#include "json/parse.h"

namespace meshplan {
namespace {

// "pointer: message, bytes" of what reading meets; empty where all is well.
std::string problem(const std::string& text, const std::function<void(const Value&)>& read) {
  const auto parsed = parse_json(text, {});
  REQUIRE(std::holds_alternative<JsonDocument>(parsed));
  try {
    read(Value(std::get<JsonDocument>(parsed), 0));
  } catch (const Unreadable& found) {
    return found.pointer + ": " + found.message + ", " + text.substr(found.begin, found.end - found.begin);
  }
  return "";
}

}  // namespace

TEST_CASE("values are read by type and range") {
  const std::string text = R"({"a": [1, -5], "b/c": {"d": true, "e": "x"}, "n": null, "f": 2.5})";
  CHECK(problem(text, [](const Value& root) {
          CHECK(root.at("a").integers(-5) == std::vector<int64_t>{1, -5});
          CHECK(root.at("a").count() == 2);
          CHECK(root.at("a").first().integer(0) == 1);
          CHECK(root.at("b/c").at("d").flag());
          CHECK(root.at("b/c").at("e").text() == "x");
          CHECK(root.at("n").is_null());
          CHECK(root.at("f").number() == 2.5);
          CHECK(!root.at("f").whole());
          CHECK(!root.at("n").number());
          CHECK(!root.at("a").find("b"));
          CHECK(root.has("a"));
          CHECK(!root.has("z"));
          CHECK(root.at("b/c").as_written() == R"({"d": true, "e": "x"})");
        }).empty());
  const auto at = [&](const std::function<void(const Value&)>& read) { return problem(text, read); };
  CHECK(at([](const Value& root) { (void)root.at("z"); }) == ": the key \"z\" is missing, " + text);
  CHECK(at([](const Value& root) { (void)root.at("a").at("z"); }) == "/a: expected an object, [1, -5]");
  CHECK(at([](const Value& root) { (void)root.at("a").integers(0); }) == "/a/1: -5 is out of range: expected 0 or more, -5");
  CHECK(at([](const Value& root) { (void)root.at("a").first().integer(2, 4); }) == "/a/0: 1 is out of range: expected 2 to 4, 1");
  CHECK(at([](const Value& root) { (void)root.at("f").integer(0); }) == "/f: expected an integer, 2.5");
  CHECK(at([](const Value& root) { (void)root.at("n").flag(); }) == "/n: expected true or false, null");
  CHECK(at([](const Value& root) { (void)root.at("b/c").at("d").text(); }) == "/b~1c/d: expected a string, true");
  CHECK(at([](const Value& root) { (void)root.at("n").texts(); }) == "/n: expected a list, null");
  CHECK(at([](const Value& root) { (void)root.at("b/c").at("e").must(std::optional<int>(), "op"); }) == "/b~1c/e: unknown op \"x\", \"x\"");
}

}  // namespace meshplan
