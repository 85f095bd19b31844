// The table of a text: structure, limits, places, canonical form.
#include "json/document.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <deque>

#include "json/scan.h"
#include "json/write.h"

namespace meshplan {
namespace {

std::string codes_of(const std::string& text) {
  Diagnostics diagnostics;
  (void)read_json(text, "a.json", diagnostics);
  std::string codes;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) codes += (codes.empty() ? "" : " ") + diagnostic.code;
  return codes;
}

// The text is kept: a document is a view of it.
JsonDocument parsed(const std::string& given) {
  static std::deque<std::string> texts;
  const std::string& text = texts.emplace_back(given);
  Diagnostics diagnostics;
  auto document = read_json(text, "a.json", diagnostics);
  REQUIRE(document);
  CHECK(diagnostics.empty());
  return std::move(*document);
}

std::string canonical(const std::string& text) { return canonical_text(parsed(text)); }

}  // namespace

TEST_CASE("of a file that holds nothing the help is true whatever it was to be") {
  Diagnostics diagnostics;
  CHECK(!read_json("", "a.plan.json", diagnostics));
  REQUIRE(diagnostics.sorted().size() == 1);
  CHECK(diagnostics.sorted().front().help.find("a spec begins with {") == 0);
  CHECK(diagnostics.sorted().front().help.find("a plan is what meshplan plan writes") != std::string::npos);
}

TEST_CASE("children stand after their parent, siblings at next, and every node knows its way") {
  const std::string text = R"({"a": [1, {"b/c~": true}], "d": null})";
  const JsonDocument document = parsed(text);
  REQUIRE(document.nodes.size() == 6);
  CHECK(document.nodes[0].count == 2);
  CHECK(document.nodes[1].next == 5);
  CHECK(document.nodes[4].truth);
  CHECK(pointer_to(document, 0).empty());
  CHECK(pointer_to(document, 2) == "/a/0");
  CHECK(pointer_to(document, 4) == "/a/1/b~1c~0");
  CHECK(find_key(document, 0, "d") == 5);
  CHECK(find_key(document, 0, "e") == 0);
  CHECK(find_key(document, 1, "a") == 0);
  CHECK(raw(document, document.nodes[3]) == R"({"b/c~": true})");
  CHECK(place_of(document, 4).column == 20);
  CHECK(place_of_key(document, 5).column == 28);
}

TEST_CASE("deep nesting ends with an error, however deep") {
  CHECK(codes_of(std::string(64, '[') + std::string(64, ']')).empty());
  CHECK(codes_of(std::string(65, '[') + std::string(65, ']')) == "E0108");
  CHECK(codes_of(std::string(100'000, '[')) == "E0108");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK(codes_of(objects) == "E0108");
}

TEST_CASE("a file of more than 64 MiB is not read") {
  std::string text(max_json_bytes + 1, ' ');
  CHECK(codes_of(text) == "E0109");
  text.pop_back();
  text[0] = '1';
  CHECK(codes_of(text).empty());
}

TEST_CASE("more than 8,388,608 values are not read") {
  std::string text = "[1";
  text.reserve(2 * max_json_values + 2);
  for (size_t i = 2; i < max_json_values; ++i) text += ",1";
  CHECK(codes_of(text + "]").empty());
  CHECK(codes_of(text + ",1]") == "E0109");
}

TEST_CASE("numbers keep what they are") {
  const JsonDocument document = parsed("[9223372036854775807, -9223372036854775808, 9223372036854775808, 1.0, 1e3, -0]");
  CHECK(integer_of(document, document.nodes[1]) == INT64_MAX);
  CHECK(integer_of(document, document.nodes[2]) == INT64_MIN);
  CHECK_FALSE(integer_of(document, document.nodes[3]));
  CHECK(document.nodes[3].kind == JsonKind::integer);
  CHECK(document.nodes[4].kind == JsonKind::number);
  CHECK(document.nodes[5].kind == JsonKind::number);
  CHECK_FALSE(integer_of(document, document.nodes[5]));
  CHECK(integer_of(document, document.nodes[6]) == 0);
}

TEST_CASE("escapes are resolved") {
  const JsonDocument document = parsed(R"(["\"\\\/\b\f\n\r\t", "\u00e9\ud83d\ude00", {"\u0061": 1}])");
  std::string buffer;
  CHECK(string_of(document, document.nodes[1], buffer) == "\"\\/\b\f\n\r\t");
  CHECK(string_of(document, document.nodes[2], buffer) == "é😀");
  CHECK(key_of(document, document.nodes[4], buffer) == "a");
  CHECK(find_key(document, 3, "a") == 4);
}

TEST_CASE("keys are compared by what they mean, in small objects and in large ones") {
  CHECK(codes_of(R"({"a": 1, "\u0061": 2})") == "E0110");
  std::string many = "{";
  for (int i = 0; i < 5000; ++i) many += "\"k" + std::to_string(i) + "\": 1, ";
  CHECK(codes_of(many + "\"k5000\": 1}").empty());
  CHECK(codes_of(many + "\"k4999\": 1, \"k0\": 2}") == "E0110 E0110");
}

TEST_CASE("the canonical text: sorted keys, no blanks, least escapes, shortest numbers") {
  CHECK(canonical("{ \"b\" : [ 1 , 2.50 ] , \"a\" : { } /* c */ }") == R"({"a":{},"b":[1,2.5]})");
  CHECK(canonical(R"({"é": 1, "z": 2, "Z": 3, "\u007a2": 4})") == R"({"Z":3,"z":2,"z2":4,"é":1})");
  CHECK(canonical(R"("\u00e9\u001f\/\u007f")") == "\"é\\u001f/\x7f\"");
  CHECK(canonical("[1e16, 1e15, 123456789012345678, 0.0001, 0.00001, -0, -0.0, 1E2, 100.0, 5e-324, 1.7976931348623157e308]") ==
        "[1e+16,1000000000000000.0,123456789012345678,0.0001,1e-05,0,-0.0,100.0,100.0,5e-324,1.7976931348623157e+308]");
  CHECK(canonical("[1e999, 18446744073709551616]") == "[1e999,18446744073709551616]");
  const std::string text = R"({"b":[true,null,{"c":"x"}],"a":-3.25e-7})";
  CHECK(canonical(canonical(text)) == canonical(text));
}

}  // namespace meshplan
