#include "search/known_exchanges.h"

#include <algorithm>
#include <random>

#include "../cost/some_protocols.h"
#include "doctest/doctest.h"
#include "small_question.h"

using namespace meshplan;

TEST_CASE("what is known of an exchange stays known, by whichever end it is asked for") {
  test::SmallQuestion question({2, 2}, test::two_levels(2, 500), {{8, 8}, DType::float32});
  const auto p = question.problem();
  REQUIRE(p);
  std::mt19937_64 random(1);
  KnownExchanges known;
  std::vector<uint32_t> numbers;
  for (int k = 0; k < 12; ++k) numbers.push_back(known.number(test::random_state(*p, 0, random)));
  const uint32_t a = numbers.front();
  const uint32_t b = *std::find_if(numbers.begin(), numbers.end(), [&](uint32_t n) { return n != a; });
  CHECK(known.find(a, b) == nullptr);
  known.ask_from(*p, a, 7);
  REQUIRE(known.find(a, b) != nullptr);
  CHECK(known.find(a, b)->of_less_held());
  CHECK(known.find(a, b)->of_more_wanted());
  CHECK_FALSE(known.find(a, a)->of_less_held());  // it does not run, which says nothing of others
  CHECK(known.find(b, a) == nullptr);
  CHECK(known.between(a, a).ps() == too_long);
  CHECK(known.between(a, b).ps() == 7);
  CHECK(known.between(a, b).known() == Known::latency);
  known.between(a, b) = {12, Known::floors};
  known.ask_to(*p, b, 7);
  CHECK(known.between(a, b).ps() == 12);
  CHECK(known.between(a, b).known() == Known::floors);
  CHECK_FALSE(known.find(a, b)->of_less_held());
  known.between(a, b) = {13, Known::boxes, false, true};
  CHECK(known.find(a, b)->ps() == 13);
  CHECK(known.find(a, b)->known() == Known::boxes);
  CHECK_FALSE(known.find(a, b)->of_less_held());
  CHECK(known.find(a, b)->of_more_wanted());
  known.between(a, b) = {15, Known::price};
  known.ask_from(*p, a, 7);
  CHECK(known.between(a, b).ps() == 15);
  // States that are met later join the rows.
  SearchState later = test::random_state(*p, 1, random);
  const uint32_t c = known.number(later);
  known.ask_from(*p, a, 7);
  known.ask_to(*p, a, 7);
  CHECK(known.between(a, c).ps() == too_long);  // makes sums pending
  CHECK(known.between(c, a).ps() == 7);
  CHECK(known.between(a, b).ps() == 15);
}
