// A state of a search stands for a State: what is asked of one is asked of the other.
#include "search/search_state.h"

#include <random>

#include "doctest/doctest.h"
#include "small_question.h"

using namespace meshplan;

TEST_CASE("states cut evenly where their boxes do: parts of a mesh dim cut where the whole dim would") {
  int even = 0;
  int uneven = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{4, 4}, {8, 3}, {2, 12}}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 24}, {6, 16}, {48, 12}}) {
      test::SmallQuestion question(sizes, test::two_levels(sizes[1] / 2 * 2, 500), {shape, DType::float32});
      const auto p = question.problem();
      REQUIRE(p);
      std::mt19937_64 random(5);
      for (int k = 0; k < 300; ++k) {
        const SearchState s = test::random_state(*p, 0, random);
        const State state = to_state(*p, s);
        bool all = true;
        for (size_t d = 0; d < shape.size(); ++d) all = all && cuts_evenly(state.shards[d], shape[d], p->mesh_sizes);
        CAPTURE(to_text(state, sizes));
        REQUIRE(cuts_evenly(*p, s) == all);
        ++(all ? even : uneven);
      }
    }
  }
  CHECK(even > 100);
  CHECK(uneven > 100);
}
