// Completeness as a value: names, and the one place that makes a gap of it.
#include "plan/shortcuts.h"

#include <doctest/doctest.h>

#include <vector>

#include "plan/plan.h"

using namespace meshplan;

TEST_CASE("every shortcut has a name that reads back") {
  Shortcuts all;
  for (int i = 0; i < shortcut_kinds; ++i) {
    const auto shortcut = static_cast<Shortcut>(i);
    CHECK(parse_shortcut(to_text(shortcut)) == shortcut);
    CHECK_FALSE(all.has(shortcut));
    all.add(shortcut);
    CHECK(all.has(shortcut));
  }
  CHECK(names_of(all).size() == static_cast<size_t>(shortcut_kinds));
  CHECK(parse_shortcut("none") == std::nullopt);
  CHECK(to_text(Shortcuts{}) == "none");
  Shortcuts two;
  two.add(Shortcut::few_aims);
  two.add(Shortcut::work_budget);
  CHECK(to_text(two) == "work_budget, few_aims");
}

TEST_CASE("a gap is 0 where nothing was left out, else within cost and bound, printed too") {
  CHECK(gap_ps(9'000, 1'000, 2'000, {}) == 0);
  Shortcuts some;
  some.add(Shortcut::work_budget);
  CHECK(gap_ps(9'000, 1'000, 2'000, some) == 7'000);
  CHECK(gap_ps(9'000, 4'000, 2'000, some) == 5'000);
  CHECK(gap_ps(9'000, 9'000, 2'000, some) == 0);
  // What only the search knows proves or counts for nothing, but where its work alone ended.
  Shortcuts others = some;
  others.add(Shortcut::few_aims);
  CHECK(gap_ps(9'000, 4'000, 2'000, others) == 7'000);
  CHECK(gap_ps(9'400, 4'000, 2'600, others) == 7'000);
  CHECK(gap_ps(9'000, 9'000, 2'000, others) == 0);
  const std::vector<int64_t> times{0, 1, 999, 1'000, 1'001, 1'500, 2'000, 2'999, 3'001, 77'777};
  for (const int64_t cost : times) {
    for (const int64_t least : times) {
      for (const int64_t printed : times) {
        const int64_t gap = gap_ps(cost, least, printed, some);
        CHECK(gap >= 0);
        CHECK(gap <= std::max<int64_t>(0, cost - printed));
        CHECK(ns_of_ps(gap) <= std::max<int64_t>(0, ns_of_ps(cost) - ns_of_ps(printed)));
      }
    }
  }
}
