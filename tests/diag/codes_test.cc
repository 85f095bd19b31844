// The table of codes: complete, in order, and explained.
#include "diag/codes.h"

#include <doctest/doctest.h>

#include <set>

namespace meshplan {

TEST_CASE("codes are unique, in order and explained") {
  std::string last;
  std::set<std::string> names;
  for (const CodeEntry& entry : code_table()) {
    INFO(entry.code);
    CHECK(entry.code > last);
    last = entry.code;
    CHECK(entry.code.size() == 5);
    CHECK(names.insert(entry.name).second);
    CHECK(entry.title.size() > 10);
    CHECK(entry.title.back() != '.');
    CHECK(entry.explanation.size() > 40);
    CHECK(entry.explanation.back() == '.');
    CHECK(entry.failing.empty() == (entry.code == "E0699"));  // no input raises a bug that is known
    CHECK(entry.failing.empty() == entry.fixed.empty());
    CHECK(find_code(entry.code) == &entry);
  }
  CHECK(find_code("E0000") == nullptr);
  CHECK(find_code("E9999") == nullptr);
  CHECK(find_code("") == nullptr);
}

TEST_CASE("an explanation shows title, meaning and both examples") {
  const auto text = explain_code("e0204");
  REQUIRE(text);
  CHECK(text->find("E0204 (not_an_integer): a fraction or an exponent where a plain number is expected\n\n") == 0);
  CHECK(text->find("\nExample:\n\n    {\n      \"schema\"") != std::string::npos);
  CHECK(text->find("\nFixed:\n\n") != std::string::npos);
  CHECK_FALSE(explain_code("E0000"));
  CHECK_FALSE(explain_code("nonsense"));
}

}  // namespace meshplan
