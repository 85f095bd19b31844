// What a text is, by its schema.
#include "json/document_kind.h"

#include <doctest/doctest.h>

#include <string>

namespace meshplan {

TEST_CASE("a document is what its outermost schema says") {
  CHECK(document_kind(R"({"schema": "meshplan/spec/1"})") == DocumentKind::spec);
  CHECK(document_kind(R"({"mesh": {"dims": [1]}, "schema":"meshplan/plan/1.2", "x": 1})") == DocumentKind::plan);
  CHECK(document_kind("// mine\n{ /* of mine */ \"schema\" /* is */ : // this\n \"meshplan/spec/1\"}") == DocumentKind::spec);
}

TEST_CASE("names, notes and comments say nothing of it") {
  CHECK(document_kind(R"({"redistributions": [{"id": "meshplan/spec/read.py:3"}], "schema": "meshplan/plan/1"})") == DocumentKind::plan);
  CHECK(document_kind(R"({"redistributions": [{"schema": "meshplan/spec/1"}], "schema": "meshplan/plan/1"})") == DocumentKind::plan);
  CHECK(document_kind(R"({"x": "{\"schema\": \"meshplan/plan/1\"", "schema": "meshplan/spec/1"})") == DocumentKind::spec);
  CHECK(document_kind(R"({"x": "schema", "schema": "meshplan/spec/1"})") == DocumentKind::spec);
  CHECK(document_kind("// made beside \"schema\": \"meshplan/plan/1\"\n{\"schema\": \"meshplan/spec/1\"}") == DocumentKind::spec);
}

TEST_CASE("what is neither has no kind, however it ends") {
  for (const std::string text :
       {"", "{", "[\"schema\", \"meshplan/spec/1\"]", "{\"schema\"", "{\"schema\": 1}", "{\"schema\": \"meshplan/report/1\"}",
        "{\"x\": {\"schema\": \"meshplan/spec/1\"}}", "{\"schema\": \"mesh", "{\"x\\", "/* {\"schema\": \"meshplan/spec/1\"}"})
    CHECK_MESSAGE(!document_kind(text).has_value(), text);
}

}  // namespace meshplan
