// Units that hold ranks of a set, and the levels over which a rank meets them.
#include "cost/unit_counts.h"

#include <doctest/doctest.h>

namespace meshplan {

TEST_CASE("a rank meets others inside its host and across, each level by itself") {
  const std::vector<int64_t> level_ranks{8, 64};
  const LevelUnits units(level_ranks);
  const UnitCounts some = counts_of(units, {6, 7, 8, 9});
  CHECK(some == UnitCounts{{{0, 0}, 2}, {{0, 1}, 2}, {{1, 0}, 4}});
  CHECK(meets(units, 7, some, {}, 0));
  CHECK(meets(units, 7, some, {}, 1));
  const UnitCounts here = counts_of(units, {6, 7});
  CHECK_FALSE(meets(units, 7, some, here, 0));
  CHECK(meets(units, 7, some, here, 1));
  CHECK_FALSE(meets(units, 7, here, {}, 1));
}

TEST_CASE("a level joins units of the level inside it, the innermost one ranks") {
  const std::vector<int64_t> level_ranks{8, 64};
  const LevelUnits units(level_ranks);
  CHECK(units.joined(11, 0) == 11);
  CHECK(units.joined(11, 1) == 1);
}

}  // namespace meshplan
