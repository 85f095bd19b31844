// Values by two lists.
#include "search/list_table.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace meshplan;

TEST_CASE("a table of two lists keeps what was put there, whatever else is asked for") {
  std::mt19937 random(7);
  ListTable<int> table;
  std::map<std::pair<size_t, size_t>, int> expected;
  for (int i = 1; i <= 20'000; ++i) {
    // Lists come up in no order, and some far apart.
    const size_t after = random() % (i % 50 == 0 ? 3'000 : 40);
    const size_t before = random() % (i % 50 == 1 ? 3'000 : 40);
    int& value = table.at(after, before);
    const auto [known, is_new] = expected.try_emplace({after, before}, i);
    REQUIRE(value == (is_new ? 0 : known->second));
    value = known->second;
  }
  CHECK(expected.size() > 1'600);
  for (const auto& [lists, value] : expected) REQUIRE(table.at(lists.first, lists.second) == value);
  table.clear();
  CHECK(table.at(3, 5) == 0);
}
