#include "transfer/rank_table.h"

#include <doctest/doctest.h>

using namespace meshplan;

TEST_CASE("replay ranks number the global ids in ascending order") {
  Universe universe{4, {9, 2, 7, 4}};
  const RankTable table = make_rank_table(universe);
  CHECK(table.global_ids == std::vector<int64_t>{2, 4, 7, 9});
  CHECK(table.of_position == std::vector<int32_t>{3, 0, 2, 1});
}
