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

TEST_CASE("where units cut a mesh dim unevenly over which a sum is reduced, what lies inside of all units is a sub-axis of its own") {
  struct Cut {
    std::vector<int64_t> sizes;
    int64_t inside;
    int64_t part;  // 1: none
  };
  for (const Cut& cut : {Cut{{8, 6}, 8, 2}, Cut{{8, 12}, 8, 4}, Cut{{2, 18}, 12, 6}, Cut{{4, 5}, 8, 1}, Cut{{4, 9}, 8, 1}}) {
    test::SmallQuestion question(cut.sizes, test::two_levels(cut.inside, 500), {{720, 48}, DType::float32});
    const int64_t rows = cut.sizes[1];
    CAPTURE(rows);
    question.request.src.partial = {{{1, 1, rows}, ReduceOp::sum}};
    const auto p = question.problem();
    REQUIRE(p);
    REQUIRE(!p->exact_levels);
    CHECK(p->cut_at_levels == (cut.part > 1));
    const SubAxis last = p->sub_axis[static_cast<size_t>(p->sub_axes - 1)];
    CHECK(last == SubAxis{1, cut.part > 1 ? rows / cut.part : 1, cut.part > 1 ? cut.part : rows});
    if (cut.part > 1) CHECK(question.levels.spread(std::span(&last, 1)).units == 1);
    // Also where collectives run on whole mesh dims alone: an exchange may reduce over a part.
    question.options.groups = GroupPolicy::declared;
    CHECK(question.problem()->cut_at_levels == (cut.part > 1));
    // Where it stays pending or is none, it is one sub-axis.
    question.request.dst.partial = question.request.src.partial;
    CHECK(!question.problem()->cut_at_levels);
    question.request.dst.partial = {};
    question.request.src.partial = {};
    CHECK(!question.problem()->cut_at_levels);
  }
}

TEST_CASE("shards nest where their boxes do, for all lists of parts of a mesh dim and another one") {
  PlanProblem p;
  p.even = false;
  p.mesh_sizes = {12, 2};
  p.sub_axes = 4;
  p.sub_axis = {SubAxis{0, 1, 2}, SubAxis{0, 2, 3}, SubAxis{0, 6, 2}, SubAxis{1, 1, 2}};
  p.size = {2, 3, 2, 2};
  p.dims = 1;
  p.tensor_dim[0] = 0;
  int64_t apart = 0;
  for (int64_t extent = 0; extent <= 30; ++extent) {
    p.tensor.shape = {extent};
    std::array<uint8_t, 4> order{0, 1, 2, 3};
    do {
      SearchState s;
      std::vector<SubAxis> list;
      for (const uint8_t sub_axis : order) {
        append(s, 1, 0, sub_axis);
        list.push_back(p.sub_axis[sub_axis]);
        const std::vector<Interval> all = shard_intervals(list, extent, p.mesh_sizes);
        for (int k = 1; k < s.length(0); ++k) {
          const std::vector<Interval> first = shard_intervals(std::span(list).first(k), extent, p.mesh_sizes);
          const size_t behind = all.size() / first.size();
          bool nest = true;
          for (size_t i = 0; i < all.size(); ++i) {
            const Interval& outer = first[i / behind];
            nest = nest && (width(all[i]) == 0 || (outer.lo <= all[i].lo && all[i].hi <= outer.hi));
          }
          CAPTURE(extent);
          CAPTURE(k);
          CHECK(shards_nest(p, s, 0, k) == nest);
          apart += !nest;
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  CHECK(apart > 100);
}

TEST_CASE("sums join on no sub-axis that stays a shard, also where only the even states are looked at") {
  for (const int64_t extent : {48, 7}) {
    CAPTURE(extent);
    test::SmallQuestion question({2, 3, 2}, test::two_levels(4, 500),
                                 {{extent}, DType::bfloat16});  // S(0) on the first mesh dim at both ends
    question.request.src.partial = {{{1, 1, 3}, ReduceOp::sum}};
    const auto p = question.problem();
    REQUIRE(p);
    REQUIRE(p->even == (extent == 48));
    const PlanProblem even = even_part(*p);
    CHECK((p->joins & frozen_sub_axes(*p)) == 0);
    CHECK(frozen_sub_axes(even) == sub_axes_within(*p, {0, 1, 2}));
    CHECK((even.joins & frozen_sub_axes(even)) == 0);
    CHECK(even.joins == sub_axes_within(*p, {2, 1, 2}));
    CHECK((p->joins & even.joins) == even.joins);
  }
}
