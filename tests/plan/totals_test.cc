#include "plan/totals.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "plan/plan.h"

using namespace meshplan;

TEST_CASE("sums are weighted by count, peaks are not, and nothing overflows") {
  PlannedRedistribution wq;
  wq.request.count = 32;
  wq.totals = {2, 10, 100, 7, 9, 5};
  PlannedRedistribution embedding;
  embedding.totals = {1, 1, 300, 1, 1, 1};
  CHECK(weighted(wq) == Totals{64, 320, 100, 224, 288, 160});
  CHECK(total_of({wq, embedding}) == Totals{65, 321, 300, 225, 289, 161});
  CHECK(total_of({}) == Totals{});
  embedding.totals.wire_bytes = INT64_MAX;
  CHECK(total_of({wq, embedding}).wire_bytes == INT64_MAX);
  int64_t sum = 5;
  add_weighted(sum, 3, 4);
  CHECK(sum == 17);
}
