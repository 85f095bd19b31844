// What ranks have along tensor dims, by the lists of states.
#include "search/rank_sides.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "cost/topology.h"
#include "search/search_state.h"
#include "small_question.h"

using namespace meshplan;

TEST_CASE("the lists of a state are its lists one by one, whichever states were asked for before") {
  test::SmallQuestion question({4, 6, 2}, test::two_levels(8, 500), {{25, 7, 96}, DType::bfloat16});
  const auto p = question.problem();
  REQUIRE(p);
  std::mt19937_64 random(11);
  std::map<std::pair<int, uint32_t>, uint64_t> keys;  // by dim and number of the list
  for (int k = 0; k < 3'000; ++k) {
    const SearchState from = test::random_state(*p, static_cast<uint16_t>(random() & p->all), random);
    const SearchState to = test::random_state(*p, 0, random);
    const RankSides::Lists& of_from = p->sides.lists(*p, from);
    const RankSides::Lists& of_to = p->sides.lists(*p, to);
    for (const auto& [state, lists] : {std::pair(from, &of_from), std::pair(to, &of_to)}) {
      REQUIRE(lists->sub_axes == sharding(state, p->dims));
      int64_t widest = 1;
      for (int d = 0; d < p->dims; ++d) {
        const RankSides::Sides& along = p->sides.of(*p, state, d);
        REQUIRE(lists->along[as_index(d)] == &along);
        REQUIRE(keys.try_emplace({d, along.list}, list_key(state, d)).first->second == list_key(state, d));
        REQUIRE(along.even == cuts_evenly(*p, state, d));
        widest *= along.widest;
      }
      REQUIRE(lists->widest == widest);
      REQUIRE(box_elements(*p, state) == widest * p->idle_elements);
    }
  }
  CHECK(keys.size() == 48);
}

TEST_CASE("lists that are recalled are those of their state, also after what was known is dropped") {
  test::SmallQuestion question({4, 6, 2}, test::two_levels(8, 500), {{25, 7, 96}, DType::bfloat16});
  const auto p = question.problem();
  REQUIRE(p);
  std::mt19937_64 random(12);
  std::vector<RankSides::Lists> kept;
  const RankSides fresh = p->sides;  // knows the ranks and no lists
  for (int k = 0; k < 50; ++k) kept.push_back(p->sides.lists(*p, test::random_state(*p, 0, random)));
  for (int k = 0; k < 3'000; ++k) {
    const RankSides::Lists& from = kept[random() % kept.size()];
    const RankSides::Lists& to = kept[random() % kept.size()];
    p->sides.recall(to);
    p->sides.recall(from);
    for (const RankSides::Lists* lists : {&from, &to}) {
      const RankSides::Lists& found = p->sides.lists(*p, lists->of);
      REQUIRE(same_lists(found.of, lists->of));
      REQUIRE(found.sub_axes == lists->sub_axes);
      REQUIRE(found.widest == lists->widest);
      REQUIRE(found.along == lists->along);
    }
  }
  // Once what was known is dropped they are not taken.
  RankSides::Lists stale = kept.front();
  stale.widest = -1;
  stale.drops += 1;
  RankSides other = fresh;
  other.recall(stale);
  CHECK(other.lists(*p, stale.of).widest == kept.front().widest);
}
