#include "base/result.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace meshplan;

namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return bad_input(std::to_string(value) + " is odd");
  return value / 2;
}

}  // namespace

TEST_CASE("a result holds a value or the reason why there is none") {
  const Result<int> good = half(8);
  REQUIRE(good.ok());
  CHECK(*good == 4);
  const Result<int> bad = half(7);
  REQUIRE(!bad);
  CHECK(bad.error() == bad_input("7 is odd"));
  CHECK(half(half(8).value()).value() == 2);
}

TEST_CASE("a result of a text is a text, also where the error is text too") {
  const Result<std::string> text = std::string("fine");
  CHECK(*text == "fine");
  CHECK(text->size() == 4);
}

TEST_CASE("a value that can only be moved moves out") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = *std::move(result);
  CHECK(*taken == 5);
}

TEST_CASE("asking for what is not there is a programmer's mistake that says what is there") {
  CHECK_THROWS_WITH_AS((void)half(7).value(), doctest::Contains("value() of a failed result: 7 is odd"), InternalError);
  CHECK_THROWS_WITH_AS((void)half(8).error(), doctest::Contains("error() of a result that holds a value"), InternalError);
}

TEST_CASE("faults have the exit codes of the contract") {
  CHECK(exit_code(Fault::bad_input) == 2);
  CHECK(exit_code(Fault::no_plan) == 3);
  CHECK(exit_code(Fault::wrong_data) == 4);
  CHECK(exit_code(Fault::environment) == 5);
}

TEST_CASE("a check that holds does not look at its sentence") {
  int looked = 0;
  auto sentence = [&looked] { return "looked " + std::to_string(++looked); };
  MESHPLAN_CHECK(looked == 0, sentence());
  CHECK(looked == 0);
  CHECK_THROWS_WITH_AS(MESHPLAN_CHECK(looked == 1, sentence()), doctest::Contains("looked 1 (looked == 1)"), InternalError);
}
