#include "replay/shrink.h"

#include <doctest/doctest.h>

#include "tensor/box.h"

using namespace meshplan;

namespace {

State state_of(std::string_view text, const std::vector<int64_t>& mesh, size_t rank) {
  auto state = parse_state(text, mesh, rank);
  REQUIRE(state.ok());
  return *state;
}

// Empty shards, remainders at the first cut and equal cut points, the slow way: from the boxes alone.
void check_alike(int64_t large, int64_t small, const std::vector<State>& states, const std::vector<int64_t>& mesh) {
  int64_t n = 1;
  for (int64_t s : mesh) n *= s;
  std::vector<Interval> big;
  std::vector<Interval> little;
  for (const State& s : states) {
    for (int64_t i = 0; i < n; ++i) {
      const auto c = coordinates_of(i, mesh);
      big.push_back(shard_interval(s.shards[0], large, mesh, c));
      little.push_back(shard_interval(s.shards[0], small, mesh, c));
    }
  }
  for (size_t i = 0; i < big.size(); ++i) {
    CHECK((width(big[i]) == 0) == (width(little[i]) == 0));
    for (size_t j = 0; j < big.size(); ++j) {
      CHECK((big[i].lo < big[j].lo) == (little[i].lo < little[j].lo));
      CHECK((big[i].hi <= big[j].lo) == (little[i].hi <= little[j].lo));
      if (i / static_cast<size_t>(n) == j / static_cast<size_t>(n)) {  // of one state
        CHECK((width(big[i]) == width(big[j])) == (width(little[i]) == width(little[j])));
      }
    }
  }
}

}  // namespace

TEST_CASE("the small extent has the same remainders, empty shards and cut points") {
  const std::vector<int64_t> mesh{2, 3, 2};
  const std::vector<std::vector<std::string>> stories{{"S(0)RR", "RRS(0)"},
                                                      {"S(0)[0]S(0)[1]R", "RS(0)R"},
                                                      {"S(0)[1]RS(0)[0]", "S(0)[0]RS(0)[1]"},
                                                      {"RS(0)R"},
                                                      {"RRR"},
                                                      {"S(0)[2]S(0)[1]S(0)[0]", "RRR"}};
  for (const auto& texts : stories) {
    std::vector<State> states;
    for (const auto& t : texts) states.push_back(state_of(t, mesh, 1));
    std::vector<StateOnMesh> on;
    for (const State& s : states) on.push_back({&s, mesh});
    for (int64_t n : {0, 1, 2, 3, 5, 6, 7, 11, 12, 13, 24, 25, 100, 119, 120, 121, 1000, 1001, 4096, 99999}) {
      const int64_t small = shrink_shape({n}, on, 1)[0];
      CAPTURE(texts);
      CAPTURE(n);
      CAPTURE(small);
      CHECK(small <= n);
      CHECK((small == 0) == (n == 0));
      CHECK(same_pattern(n, small, 0, on));
      check_alike(n, small, states, mesh);
      if (n >= 4096) CHECK(small <= 60);
    }
  }
}

TEST_CASE("a captured tensor shrinks to what is asked and no further") {
  const std::vector<int64_t> mesh{8, 8};
  const State a = state_of("S(0)[0]S(0)[1]", mesh, 2);
  const State b = state_of("RS(0)", mesh, 2);
  const std::vector<StateOnMesh> on{{&a, mesh}, {&b, mesh}};
  const std::vector<int64_t> shape{14336, 4096};
  const auto half = shrink_shape(shape, on, 14336 * 4096 / 8);
  CHECK(half[0] * half[1] <= 14336 * 4096 / 8);
  CHECK(half[0] * half[1] > 14336 * 4096 / 64);
  CHECK(half[0] % 64 == 0);
  CHECK(shrink_shape(shape, on, 1) == std::vector<int64_t>{128, 1});
  CHECK(shrink_shape(shape, on, 14336 * 4096) == shape);
}

TEST_CASE("parts off the start of a mesh dim need no more than they cut, those from its start chunks of the whole dim") {
  const std::vector<int64_t> mesh{48, 2};
  const State last = state_of("{R:24,S(0):2}R", mesh, 1);
  const State whole = state_of("RR", mesh, 1);
  CHECK(shrink_shape({7168}, {{&last, mesh}, {&whole, mesh}}, 1) == std::vector<int64_t>{4});
  CHECK(shrink_shape({7169}, {{&last, mesh}, {&whole, mesh}}, 1) == std::vector<int64_t>{5});
  const State first = state_of("{S(0):24,R:2}R", mesh, 1);
  const auto small = shrink_shape({14336}, {{&first, mesh}, {&whole, mesh}}, 1);
  CHECK(small[0] <= 4 * 48);
  CHECK(same_pattern(14336, small[0], 0, {{&first, mesh}, {&whole, mesh}}));
  check_alike(7169, 5, {last, whole}, mesh);
  check_alike(14336, small[0], {first, whole}, mesh);
}

TEST_CASE("remainders may differ where they fall on the same parts") {
  const std::vector<int64_t> mesh{96};
  const State cut = state_of("S(0)", mesh, 1);
  const State whole = state_of("R", mesh, 1);
  const std::vector<StateOnMesh> on{{&cut, mesh}, {&whole, mesh}};
  // 95 parts of 75 and one of 43; of 2 and one of 1.
  CHECK(shrink_shape({7168}, on, 1) == std::vector<int64_t>{191});
  check_alike(7168, 191, {cut, whole}, mesh);
  // As large as asked for, where halves are alike.
  CHECK(shrink_shape({7168}, on, 4000) == std::vector<int64_t>{3616});
}
