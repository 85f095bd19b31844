#include "base/int_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace meshplan;

TEST_CASE("checked arithmetic gives the exact value or nothing") {
  // Against 128 bits, on values around every power of two.
  const uint64_t seed = 20260101;
  std::mt19937_64 random(seed);
  CAPTURE(seed);
  auto draw = [&random] { return static_cast<int64_t>(random()) >> (random() % 64); };
  for (int i = 0; i < 20'000; ++i) {
    const int64_t a = draw();
    const int64_t b = draw();
    auto fits = [](int128 wide) { return wide >= INT64_MIN && wide <= INT64_MAX; };
    const int128 sum = static_cast<int128>(a) + b;
    const int128 product = static_cast<int128>(a) * b;
    CAPTURE(a);
    CAPTURE(b);
    REQUIRE(checked_add(a, b).has_value() == fits(sum));
    REQUIRE(checked_mul(a, b).has_value() == fits(product));
    if (fits(sum)) REQUIRE(*checked_add(a, b) == sum);
    if (fits(product)) REQUIRE(*checked_mul(a, b) == product);
    REQUIRE(saturating_add(a, b) == (fits(sum) ? static_cast<int64_t>(sum) : sum < 0 ? INT64_MIN : INT64_MAX));
    REQUIRE(saturating_mul(a, b) == (fits(product) ? static_cast<int64_t>(product) : product < 0 ? INT64_MIN : INT64_MAX));
  }
}

TEST_CASE("a product of none is 1") {
  CHECK(checked_product({}) == 1);
  CHECK(checked_product(std::vector<int64_t>{3, 5, 7}) == 105);
  CHECK(checked_product(std::vector<int64_t>{INT64_MAX, 1}) == INT64_MAX);
  CHECK(!checked_product(std::vector<int64_t>{INT64_MAX, 2}));
  CHECK(!checked_product(std::vector<int64_t>{1LL << 32, 1LL << 31}));
}

TEST_CASE("ceil_div is the least number of pieces of size b that hold a") {
  for (int64_t a = 0; a < 50; ++a) {
    for (int64_t b = 1; b < 20; ++b) {
      const int64_t pieces = ceil_div(a, b);
      CHECK(pieces * b >= a);
      CHECK((pieces - 1) * b < a);
    }
  }
  CHECK(ceil_div(INT64_MAX, 1) == INT64_MAX);
  CHECK(ceil_div(INT64_MAX, 2) == (1LL << 62));
}

TEST_CASE("floor_div and floor_mod equal the processor's division") {
  const uint64_t seed = 20261122;
  std::mt19937_64 random(seed);
  CAPTURE(seed);
  auto check = [](int64_t a, int64_t b) {
    CAPTURE(a);
    CAPTURE(b);
    REQUIRE(floor_div(a, b) == a / b);
    REQUIRE(floor_mod(a, b) == a % b);
  };
  // Of every length, and around multiples, where a rounded quotient passes the next integer.
  auto draw = [&random] { return static_cast<int64_t>((random() >> 1) >> (random() % 63)); };
  for (int i = 0; i < 200'000; ++i) {
    const int64_t b = std::max<int64_t>(1, draw());
    const int64_t a = draw();
    check(a, b);
    const int64_t multiple = a - a % b;
    check(multiple, b);
    if (multiple > 0) check(multiple - 1, b);
  }
  constexpr int64_t edge = int64_t{1} << 53;
  for (const int64_t a : {edge - 2, edge - 1, edge, edge + 1, INT64_MAX}) {
    const auto divisors = {int64_t{1}, int64_t{2}, int64_t{3}, edge - 1, edge, edge + 1, INT64_MAX};
    for (const int64_t b : divisors) check(a, b);
  }
}
