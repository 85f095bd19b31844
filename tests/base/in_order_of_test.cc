#include "base/in_order_of.h"

#include <doctest/doctest.h>

#include <string>

namespace meshplan {

TEST_CASE("values come in the order of their numbers, those of one number as they were") {
  const auto first_digit = [](const std::string& text) { return static_cast<size_t>(text[0] - '0'); };
  const auto ordered = [&](std::vector<std::string> values) { return in_order_of(std::move(values), 4, first_digit); };
  using Texts = std::vector<std::string>;
  CHECK(ordered({"3a", "0b", "3b", "1z", "0a"}) == Texts{"0b", "0a", "1z", "3a", "3b"});
  CHECK(ordered({"0b", "0a", "2c"}) == Texts{"0b", "0a", "2c"});
  CHECK(ordered({}).empty());
}

}  // namespace meshplan
