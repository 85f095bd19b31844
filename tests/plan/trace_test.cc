#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

using namespace meshplan;

TEST_CASE("a trace is its states, whatever the arrows between them") {
  using Texts = std::vector<std::string_view>;
  CHECK(texts_of_states("P(sum)S(0)->RS(0)-->RR") == Texts{"P(sum)S(0)", "RS(0)", "RR"});
  CHECK(texts_of_states("RR") == Texts{"RR"});
  // Of a file that is not right: no step without a text on either side.
  CHECK(texts_of_states("") == Texts{""});
  CHECK(texts_of_states("->RR-->") == Texts{"", "RR", ""});
}
