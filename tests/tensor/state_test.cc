#include "tensor/state.h"

#include <doctest/doctest.h>

#include "tensor/box.h"
#include "tensor/largest_elements.h"

using namespace meshplan;

namespace {

std::vector<Placement> places(const std::vector<std::string>& texts) {
  std::vector<Placement> out;
  for (const auto& text : texts) {
    auto p = parse_placement(text);
    REQUIRE_MESSAGE(p.ok(), text);
    out.push_back(*p);
  }
  return out;
}

const std::vector<int64_t> mesh{2, 4, 2};

}  // namespace

TEST_CASE("placements print as they parse") {
  for (const char* text : {"R", "S(0)", "S(12)", "P(sum)", "P(avg)", "P(min)", "P(max)", "P(product)", "SS(0,2)"}) {
    auto p = parse_placement(text);
    REQUIRE(p.ok());
    CHECK(to_text(*p) == text);
  }
  for (const char* text :
       {"", "r", "S", "S()", "S(-1)", "S(0", "P", "P()", "P(mean)", "P(mask)", "SS(0)", "SS(0,0)", "S(99999999999)", "R "}) {
    CHECK_FALSE(parse_placement(text).ok());
  }
}

TEST_CASE("states print as PyTorch prints them and parse back") {
  struct Case {
    std::vector<std::string> placements;
    std::vector<ShardOrder> orders;
    const char* text;
  };
  for (const Case& c : std::vector<Case>{
           {{"P(sum)", "R", "S(0)"}, {}, "P(sum)RS(0)"},
           {{"S(0)", "S(0)", "R"}, {}, "S(0)[0]S(0)[1]R"},
           {{"S(0)", "R", "S(0)"}, {{0, {2, 0}}}, "S(0)[1]RS(0)[0]"},
           {{"SS(0,2)", "R", "S(0)"}, {}, "S(0)[1]RS(0)[0]"},
           {{"SS(0,8)", "SS(0,2)", "S(0)"}, {}, "S(0)[2]S(0)[1]S(0)[0]"},
           {{"S(1)", "P(sum)", "P(avg)"}, {}, "S(1)P(sum)P(avg)"},
       }) {
    auto state = make_state(places(c.placements), mesh, 2, c.orders);
    REQUIRE(state.ok());
    CHECK(to_text(*state, mesh) == c.text);
    auto back = parse_state(c.text, mesh, 2);
    REQUIRE(back.ok());
    CHECK(*back == *state);
  }
}

TEST_CASE("a split mesh dim prints its parts and parses back") {
  State state;
  state.shards = {{{1, 1, 2}}, {{0, 1, 2}, {1, 2, 2}}};
  CHECK(to_text(state, mesh) == "S(1)[0]{S(0):2,S(1)[1]:2}R");
  auto back = parse_state(to_text(state, mesh), mesh, 2);
  REQUIRE(back.ok());
  CHECK(*back == state);
  CHECK_FALSE(has_whole_dims(state, mesh));
  for (const char* text : {"", "RR", "RRRR", "R{R:3,R:1}R", "R{R:2}R", "R{S(0):2,R:2", "S(2)RR", "S(0)[1]RR", "S(0)[0]S(0)[0]R",
                           "P(sum)P(max)R", "R{R:0,R:4}R", "R{R:99999999999999999999,R:1}R", "SS(0,2)RR", "S(0)[RR"}) {
    CHECK_MESSAGE(!parse_state(text, mesh, 2).ok(), text);
  }
}

TEST_CASE("what no state can be is refused") {
  CHECK_FALSE(make_state(places({"R", "R"}), mesh, 2).ok());
  CHECK_FALSE(make_state(places({"S(2)", "R", "R"}), mesh, 2).ok());
  CHECK_FALSE(make_state(places({"P(sum)", "P(max)", "R"}), mesh, 2).ok());
  CHECK_FALSE(make_state(places({"SS(0,3)", "R", "S(0)"}), mesh, 2).ok());
  CHECK_FALSE(make_state(places({"S(0)", "S(0)", "R"}), mesh, 2, std::vector<ShardOrder>{{0, {0}}}).ok());
  CHECK_FALSE(make_state(places({"S(0)", "S(0)", "R"}), mesh, 2, std::vector<ShardOrder>{{0, {0, 0}}}).ok());
  CHECK_FALSE(make_state(places({"S(0)", "S(0)", "R"}), mesh, 2, std::vector<ShardOrder>{{5, {0, 1}}}).ok());
}

TEST_CASE("ten over 2x2 nested is 3,2,3,2 and over 4 is 3,3,3,1") {
  const std::vector<int64_t> square{2, 2};
  const std::vector<int64_t> shape{10};
  auto nested = make_state(places({"S(0)", "S(0)"}), square, 1);
  REQUIRE(nested.ok());
  std::vector<int64_t> widths;
  for (int64_t r = 0; r < 4; ++r) widths.push_back(width(box_of(*nested, shape, square, coordinates_of(r, square))[0]));
  CHECK(widths == std::vector<int64_t>{3, 2, 3, 2});
  const std::vector<int64_t> line{4};
  auto flat = make_state(places({"S(0)"}), line, 1);
  REQUIRE(flat.ok());
  widths.clear();
  for (int64_t r = 0; r < 4; ++r) widths.push_back(width(box_of(*flat, shape, line, coordinates_of(r, line))[0]));
  CHECK(widths == std::vector<int64_t>{3, 3, 3, 1});
}

TEST_CASE("the major part of a mesh dim holds the union of the chunks that its minor part cuts") {
  // 10 over a dim of size 4: chunks 3,3,3,1; its major 2 alone: 6 and 4.
  const std::vector<int64_t> line{4};
  const std::vector<int64_t> shape{10};
  State major;
  major.shards = {{{0, 1, 2}}};
  for (int64_t r = 0; r < 4; ++r) {
    Interval got = box_of(major, shape, line, coordinates_of(r, line))[0];
    CHECK(got == (r < 2 ? Interval{0, 6} : Interval{6, 10}));
  }
  // Major and minor together are the whole dim, for every extent and every factorisation.
  for (int64_t n = 0; n <= 30; ++n) {
    const std::vector<int64_t> extent{n};
    const std::vector<int64_t> twelve{12};
    State whole;
    whole.shards = {{{0, 1, 12}}};
    for (int64_t f : {1, 2, 3, 4, 6, 12}) {
      State split;
      split.shards = {{{0, 1, f}, {0, f, 12 / f}}};
      for (int64_t r = 0; r < 12; ++r)
        CHECK(box_of(split, extent, twelve, coordinates_of(r, twelve)) == box_of(whole, extent, twelve, coordinates_of(r, twelve)));
      CHECK(shard_intervals(split.shards[0], n, twelve) == shard_intervals(whole.shards[0], n, twelve));
    }
  }
}

TEST_CASE("boxes of one order tile the tensor dim and coordinate 0 holds the largest") {
  for (int64_t n = 0; n <= 40; ++n) {
    const std::vector<int64_t> shape{n};
    auto state = make_state(places({"S(0)", "S(0)", "S(0)"}), mesh, 1, std::vector<ShardOrder>{{0, {1, 2, 0}}});
    REQUIRE(state.ok());
    std::vector<int> held(static_cast<size_t>(n), 0);
    int64_t largest = largest_box(*state, shape, mesh)[0];
    const std::vector<Interval> all = shard_intervals(state->shards[0], n, mesh);
    REQUIRE(all.size() == 16);
    for (int64_t r = 0; r < 16; ++r) {
      Interval i = box_of(*state, shape, mesh, coordinates_of(r, mesh))[0];
      CHECK(width(i) <= largest);
      const auto c = coordinates_of(r, mesh);
      CHECK(i == all[static_cast<size_t>((c[1] * 2 + c[2]) * 2 + c[0])]);
      for (int64_t x = i.lo; x < i.hi; ++x) ++held[static_cast<size_t>(x)];
    }
    for (int count : held) CHECK(count == 1);
  }
}

TEST_CASE("bytes of a tensor saturate instead of overflowing") {
  CHECK(tensor_bytes({{}, DType::float32}) == 4);
  CHECK(tensor_bytes({{3, 5}, DType::bfloat16}) == 30);
  CHECK(tensor_bytes({{INT64_MAX, 3}, DType::int8}) == INT64_MAX);
  CHECK(tensor_bytes({{INT64_MAX, 0}, DType::int64}) == 0);
}

TEST_CASE("the largest box has the elements of all its sides, held at the end of 64 bits") {
  const std::vector<int64_t> mesh{2, 3};
  const auto elements = [&](const std::string& state, const std::vector<int64_t>& shape) {
    return largest_elements(*parse_state(state, mesh, shape.size()), shape, mesh);
  };
  CHECK(elements("S(0)S(1)", {7, 10}) == 4 * 4);
  CHECK(elements("S(1)[0]S(1)[1]", {7, 10}) == 7 * 2);
  CHECK(elements("RP(sum)", {7, 10}) == 70);
  CHECK(elements("RR", {}) == 1);
  CHECK(elements("RR", {7, 0}) == 0);
  CHECK(elements("RS(0)", {int64_t{1} << 40, int64_t{1} << 40}) == INT64_MAX);
  const State halves = *parse_state("S(0)R", mesh, 1);
  CHECK(largest_bytes(halves, {{7}, DType::float32}, mesh) == 4 * 4);
  CHECK(largest_bytes(halves, {{INT64_MAX}, DType::bfloat16}, mesh) == INT64_MAX);
}
