// Shards that targets meet along a dim, against every part of both lists.
#include "search/list_meetings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "small_question.h"

using namespace meshplan;

namespace {

// The most parts of `others` that one of `parts` meets, empty ones apart.
int64_t most_met(const std::vector<Interval>& parts, const std::vector<Interval>& others) {
  int64_t most = 0;
  for (const Interval& part : parts) {
    most = std::max<int64_t>(
        most, std::count_if(others.begin(), others.end(), [&](const Interval& other) { return overlap_width(part, other) > 0; }));
  }
  return most;
}

struct Counted {
  ListMeetings::Most told;
  int64_t shards = 0;  // in truth
  int64_t targets = 0;
};

Counted count(const PlanProblem& p, const std::vector<int64_t>& sizes, const SearchState& from, const SearchState& to, int d) {
  const auto parts = [&](const SearchState& s) {
    const State state = to_state(p, s);
    const auto dim = static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)]);
    return shard_intervals(state.shards[dim], p.tensor.shape[dim], sizes);
  };
  const std::vector<Interval> before = parts(from);
  const std::vector<Interval> after = parts(to);
  const RankSides::Lists lists_before = p.sides.lists(p, from);
  const RankSides::Lists lists_after = p.sides.lists(p, to);
  const ListMeetings::Most told = p.meetings.most(p.meetings.number(p, lists_before, lists_after, d));
  return {told, most_met(after, before), most_met(before, after)};
}

}  // namespace

TEST_CASE("no more shards and targets are told than meet, and all of few parts") {
  struct World {
    std::vector<int64_t> sizes;
    std::vector<int64_t> shape;
  };
  int pairs = 0;
  int exact = 0;
  for (const World& w : std::vector<World>{{{2, 3, 4}, {40, 7}},
                                           {{2, 19, 8}, {8190, 4099}},
                                           {{2, 98, 8}, {8192, 8192}},
                                           {{12, 4, 2}, {16, 50257}},
                                           {{5, 7, 6}, {1000, 4096}},
                                           {{96, 2}, {48, 300}},
                                           {{3, 16, 3}, {145, 20}}}) {
    const test::SmallQuestion question(w.sizes, uniform_topology(), {w.shape, DType::bfloat16});
    const auto p = question.problem();
    REQUIRE(p);
    std::mt19937_64 random(3);
    for (int k = 0; k < 200; ++k) {
      const SearchState from = test::random_state(*p, 0, random);
      const SearchState to = test::random_state(*p, 0, random);
      for (int d = 0; d < p->dims; ++d) {
        CAPTURE(to_text(to_state(*p, from), w.sizes));
        CAPTURE(to_text(to_state(*p, to), w.sizes));
        CAPTURE(d);
        const Counted counted = count(*p, w.sizes, from, to, d);
        REQUIRE(counted.told.shards <= counted.shards);
        REQUIRE(counted.told.targets <= counted.targets);
        const bool all = counted.told.shards == counted.shards && counted.told.targets == counted.targets;
        if (mesh_size(question.mesh) <= 64) REQUIRE(all);
        ++pairs;
        exact += all ? 1 : 0;
      }
    }
  }
  CHECK(pairs == 2'800);
  CHECK(exact > 2'650);
}

// 8190 rows cut by a 2, b 19 and c 8: the first 152 parts lie as those of b, a and c do, which are apart
// by 9 rows from there on.
TEST_CASE("parts near the end of a dim are looked at, too") {
  const std::vector<int64_t> sizes{2, 19, 8};
  const test::SmallQuestion question(sizes, uniform_topology(), {{8190, 4099}, DType::bfloat16});
  const auto p = question.problem();
  REQUIRE(p);
  SearchState from;
  SearchState to;
  for (const int sub_axis : {0, 1, 2}) append(from, p->dims, 0, static_cast<uint8_t>(sub_axis));
  for (const int sub_axis : {1, 0, 2}) append(to, p->dims, 0, static_cast<uint8_t>(sub_axis));
  CHECK(to_text(to_state(*p, to), sizes) == "S(0)[1]S(0)[0]S(0)[2]");
  const Counted counted = count(*p, sizes, from, to, 0);
  CHECK(counted.shards == 2);
  CHECK(counted.told.shards == 2);
  CHECK(counted.told.targets == 2);
}
