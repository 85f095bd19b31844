#include "transfer/sub_axes.h"

#include <doctest/doctest.h>

using namespace meshplan;

TEST_CASE("sub-axes of a mesh dim subtract") {
  const std::vector<int64_t> mesh{8};
  auto left = sub_axes_without({{0, 1, 8}}, {{0, 2, 2}}, mesh);
  REQUIRE(left.ok());
  CHECK(*left == std::vector<SubAxis>{{0, 1, 2}, {0, 4, 2}});
  CHECK(sub_axes_without({{0, 1, 8}}, {{0, 1, 8}}, mesh)->empty());
  CHECK(sub_axes_without({{0, 1, 1}}, {}, {1})->empty());
  CHECK_FALSE(sub_axes_without({{0, 1, 6}}, {{0, 2, 3}, {0, 3, 2}}, {6}).ok());
}

TEST_CASE("of a sum of which a part stays pending the rest is reduced") {
  const auto state = [](const std::string& text) { return *parse_state(text, std::vector<int64_t>{2, 6}, 1); };
  const auto reduced = [&](const std::string& after) { return reduced_between(state("P(sum)P(avg)"), state(after), {2, 6}); };
  using List = std::vector<PendingSubAxis>;
  CHECK(reduced("P(sum)P(avg)").empty());
  CHECK(reduced("RP(avg)") == List{{{0, 1, 2}, ReduceOp::sum}});
  CHECK(reduced("P(sum){P(avg):2,R:3}") == List{{{1, 2, 3}, ReduceOp::avg}});
  CHECK(reduced("R{S(0):2,P(avg):3}") == List{{{0, 1, 2}, ReduceOp::sum}, {{1, 1, 2}, ReduceOp::avg}});
  // Pending over one rank is nothing; two parts of a mesh dim are the whole.
  CHECK(reduced_between(*parse_state("P(sum)R", std::vector<int64_t>{1, 6}, 1), state("RR"), {1, 6}).empty());
  CHECK(reduced_between(state("R{P(sum):2,P(sum):3}"), state("RP(sum)"), {2, 6}).empty());
}

TEST_CASE("coordinates on sub-axes as a number and as part of the index") {
  const std::vector<SubAxis> middle{{0, 2, 2}};
  const std::vector<int64_t> one_dim{8};
  const CoordinatesOn on_middle(middle, one_dim);
  CHECK(on_middle.count() == 2);
  for (int64_t i = 0; i < 8; ++i) {
    CHECK(on_middle.number(i) == i / 2 % 2);
    CHECK(on_middle.part(i) == i / 2 % 2 * 2);
  }
  // Of several mesh dims the first in the list counts slowest; ranks with one index - part differ
  // on nothing else.
  const std::vector<int64_t> shape{2, 4, 3};
  const std::vector<SubAxis> several{{2, 1, 3}, {1, 2, 2}};
  const CoordinatesOn on(several, shape);
  CHECK(on.count() == 6);
  for (int64_t i = 0; i < 24; ++i) {
    const int64_t a = i / 12;
    const int64_t b = i / 3 % 4;
    const int64_t c = i % 3;
    CHECK(on.number(i) == c * 2 + b % 2);
    CHECK(i - on.part(i) == a * 12 + b / 2 * 6);
  }
}

TEST_CASE("the numbers of all ranks on sub-axes are those of each") {
  const std::vector<std::vector<int64_t>> shapes{{1}, {16}, {3, 4}, {2, 6, 8}, {12, 2, 4}, {2, 3, 2, 5}};
  for (const std::vector<int64_t>& shape : shapes) {
    int64_t ranks = 1;
    std::vector<SubAxis> all;  // whole mesh dims, and parts of even ones
    for (size_t m = 0; m < shape.size(); ++m) {
      ranks *= shape[m];
      const auto dim = static_cast<int32_t>(m);
      all.push_back({dim, 1, shape[m]});
      if (shape[m] % 2 == 0 && shape[m] > 2) all.push_back({dim, 2, shape[m] / 2});
    }
    for (unsigned set = 0; set < 1U << all.size(); ++set) {
      std::vector<SubAxis> list;
      for (size_t a = all.size(); a-- > 0;) {
        if ((set >> a & 1) != 0) list.push_back(all[a]);
      }
      const CoordinatesOn on(list, shape);
      const std::vector<int32_t> numbers = numbers_on(list, shape);
      REQUIRE(static_cast<int64_t>(numbers.size()) == ranks);
      for (int64_t i = 0; i < ranks; ++i) CHECK(numbers[static_cast<size_t>(i)] == on.number(i));
    }
  }
}
