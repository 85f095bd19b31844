#include "measure/statistics.h"

#include <doctest/doctest.h>

using namespace meshplan;

TEST_CASE("summaries by hand") {
  CHECK(summarise({}).samples == 0);
  const Summary one = summarise({7});
  CHECK(one.median == 7);
  CHECK(one.p95 == 7);
  CHECK_FALSE(one.p99.has_value());
  const Summary four = summarise({4, 1, 3, 2});
  CHECK(four.min == 1);
  CHECK(four.median == 2);
  CHECK(four.median_low == 1);
  CHECK(four.median_high == 4);
  std::vector<int64_t> hundred;
  for (int64_t i = 1; i <= 100; ++i) hundred.push_back(i);
  const Summary s = summarise(hundred);
  CHECK(s.median == 50);
  CHECK(s.p95 == 95);
  CHECK(s.p99 == 99);
  CHECK(s.median_low == 40);
  CHECK(s.median_high == 61);
  CHECK(summarise({5, 5, 5}).variation == 0);
  CHECK(summarise({1, 3}).variation == doctest::Approx(0.5));
}

TEST_CASE("order statistics enclose the median with at least 95 %") {
  // Known table: n = 6 -> extremes, 8 -> 1st and 8th, 9 -> 2nd and 8th, 20 -> 6th and 15th.
  CHECK(median_ranks(6) == std::pair<int64_t, int64_t>{0, 5});
  CHECK(median_ranks(8) == std::pair<int64_t, int64_t>{0, 7});
  CHECK(median_ranks(9) == std::pair<int64_t, int64_t>{1, 7});
  CHECK(median_ranks(20) == std::pair<int64_t, int64_t>{5, 14});
}

TEST_CASE("paired samples tell a shift from noise") {
  std::vector<int64_t> a;
  std::vector<int64_t> b;
  for (int64_t i = 0; i < 20; ++i) {
    a.push_back(1000 + 100 * (i % 5));
    b.push_back(a.back() + 20 + i % 3);
  }
  const PairedDifference shifted = compare_paired(b, a);
  CHECK(shifted.significant);
  CHECK(shifted.median == 21);
  const PairedDifference same = compare_paired(a, a);
  CHECK_FALSE(same.significant);
  CHECK_FALSE(compare_paired({1, 2, 3}, {9, 9, 9}).significant);  // too few
}
