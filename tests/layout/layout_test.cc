// Examples checkable by hand, and what is refused.
#include "layout/layout.h"

#include <doctest/doctest.h>

namespace meshplan {
namespace {

Layout layout(const char* text) {
  const auto parsed = parse_layout(text);
  REQUIRE_MESSAGE(parsed.ok(), text);
  return *parsed;
}

std::string text(const Result<Layout>& result) { return result ? to_text(*result) : "error: " + result.error().message; }

constexpr int64_t most = INT64_MAX;

}  // namespace

TEST_CASE("the right-most mode is fastest") {
  CHECK(offsets(layout("(2,4):(8,1)")) == std::vector<int64_t>{0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(offsets(layout("(2,4):(1,2)")) == std::vector<int64_t>{0, 2, 4, 6, 1, 3, 5, 7});
  CHECK(offset_at(layout("(2,4):(8,1)"), 5) == 9);
  CHECK(offsets(Layout{}) == std::vector<int64_t>{0});
  CHECK(size(Layout{}) == 1);
  CHECK(cosize(Layout{}) == 1);
  CHECK(cosize(layout("(2,4):(8,1)")) == 12);
}

TEST_CASE("examples of the operations") {
  CHECK(to_text(coalesce(layout("(2,1,4):(4,9,1)"))) == "8:1");
  CHECK(to_text(coalesce(layout("(2,4):(1,2)"))) == "(2,4):(1,2)");
  CHECK(text(composition(layout("(2,4):(1,2)"), layout("2:4"))) == "2:1");
  CHECK(text(composition(layout("(2,4):(8,1)"), layout("8:1"))) == "(2,4):(8,1)");
  CHECK(text(complement(layout("4:2"), 16)) == "(2,2):(8,1)");
  CHECK(text(complement(layout("(2,4):(1,2)"), 8)) == "1:0");
  CHECK(text(left_inverse(layout("(2,4):(1,2)"))) == "(4,2):(1,4)");
  CHECK(text(left_inverse(layout("4:2"))) == "(4,2):(1,1)");
  CHECK(text(right_inverse(layout("4:2"))) == "1:0");
  CHECK(text(right_inverse(layout("(2,4):(8,1)"))) == "4:1");
  const auto parts = split_layout(layout("(2,4):(8,1)"), {4, 2});
  REQUIRE(parts.ok());
  CHECK(to_text((*parts)[0]) == "(2,2):(8,2)");
  CHECK(to_text((*parts)[1]) == "2:1");
  CHECK(text(splice(layout("(2,4):(8,1)"), 1, 1, layout("(2,2):(2,1)"))) == "(2,2,2):(8,2,1)");
}

TEST_CASE("what no layout can be is refused") {
  CHECK(text(make_layout({{0, 1}})) == "error: a layout mode has size 0; sizes are 1 or more");
  CHECK(text(make_layout({{-4, 1}})) == "error: a layout mode has size -4; sizes are 1 or more");
  CHECK(text(make_layout({{4, 0}})) == "error: a layout mode of size 4 has stride 0; strides are 1 or more");
  CHECK(text(make_layout({{4, -1}})) == "error: a layout mode of size 4 has stride -1; strides are 1 or more");
  CHECK(text(make_layout({{1, -1}})) == "error: a layout mode of size 1 has stride -1; strides are 1 or more");
  CHECK(text(make_layout({{1, 0}})) == "(1):(0)");
  CHECK(text(make_layout({{most / 2 + 1, 1}, {2, 1}})) == "error: the product of a layout's sizes does not fit 64 bits");
  CHECK(text(make_layout({{4, most}})) == "error: the largest offset of a layout does not fit 64 bits");
  CHECK(text(make_layout({{2, most}})) == "error: the largest offset of a layout does not fit 64 bits");
  CHECK(text(make_layout({{2, most - 1}, {2, 1}})) == "error: the largest offset of a layout does not fit 64 bits");
  CHECK(text(make_layout({{2, most - 2}, {2, 1}})) == "(2,2):(9223372036854775805,1)");
}

TEST_CASE("what has no right answer is refused, not rounded") {
  CHECK(text(complement(layout("(2,2):(1,1)"), 8)) == "error: the copies of (2,2):(1,1) cannot tile a world: it reaches an offset twice");
  CHECK(text(complement(layout("(2,2):(3,1)"), 12)) ==
        "error: the copies of (2,2):(3,1) cannot tile a world: stride 3 is not a multiple of the 2 offsets below it");
  CHECK(text(complement(layout("4:2"), 12)) == "error: the copies of 4:2 fill multiples of 8 offsets; the world has 12");
  CHECK(text(complement(layout("4:2"), 4)) == "error: the layout 4:2 reaches offset 6, beyond its world of 4");
  CHECK(text(complement(layout("4:2"), 0)) == "error: the complement of 4:2 in a world of 0 does not exist");
  CHECK(text(complement(layout("2:4611686018427387904"), most)) ==
        "error: the layout 2:4611686018427387904 reaches offset 4611686018427387904, beyond its world of 9223372036854775807");
  CHECK(text(composition(layout("4:2"), layout("8:1"))) == "error: cannot compose 4:2 with 8:1: it has 4 elements, element 7 is requested");
  CHECK(text(composition(layout("(2,4):(8,1)"), layout("2:3"))) == "2:3");
  CHECK(text(composition(layout("(2,4):(8,1)"), layout("6:1"))) ==
        "error: cannot compose (2,4):(8,1) with 6:1: a mode of the second crosses from one mode of the first into the next, so the result "
        "is not a "
        "layout");
  CHECK_FALSE(left_inverse(layout("(2,2):(1,1)")).ok());
  CHECK_FALSE(right_inverse(layout("(2,2):(1,1)")).ok());
  CHECK(text(left_inverse(layout("(2,2):(3,2)"))) ==
        "error: the layout (2,2):(3,2) has no left inverse: stride 2 does not divide stride 3");
  CHECK(split_layout(layout("(2,4):(8,1)"), {8, 2}).error().message == "cannot split (2,4):(8,1): the factors multiply to 16, not to 8");
  CHECK(split_layout(layout("8:1"), {-8, -1}).error().message == "cannot split 8:1 by a factor of -8");
  CHECK(split_layout(layout("8:1"), {0, 8}).error().message == "cannot split 8:1 by a factor of 0");
  CHECK(split_layout(layout("8:1"), {most, most}).error().message ==
        "cannot split 8:1: the factors multiply to more than 64 bits, not to 8");
  CHECK(split_layout(layout("(3,4):(8,1)"), {2, 6}).error().message ==
        "cannot split (3,4):(8,1): a factor of 6 cuts its mode 4:1 unevenly");
  CHECK_FALSE(splice(layout("8:1"), 1, 1, layout("2:1")).ok());
  CHECK_FALSE(splice(layout("8:1"), 2, 0, layout("2:1")).ok());
  CHECK_FALSE(splice(layout("(2,2):(2,1)"), 0, 0, layout("9223372036854775807:1")).ok());
}

TEST_CASE("huge layouts cost nothing") {
  const Layout huge = layout("(1048576,1048576,4096):(4294967296,4096,1)");
  CHECK(to_text(coalesce(huge)) == "4503599627370496:1");
  CHECK(is_injective(huge));
  CHECK_FALSE(is_injective(layout("(1048576,1048577):(1048576,1)")));
  CHECK(is_injective(layout("(1048576,1048576):(1048576,1)")));
  CHECK_FALSE(is_injective(layout("(1000001,1000000):(999999,1000000)")));
  CHECK(is_injective(layout("(1000000,1000000):(999999,1000000)")));
  CHECK(text(complement(layout("1048576:1048576"), int64_t{1} << 60)) == "(1048576,1048576):(1099511627776,1)");
}

TEST_CASE("text that is no layout says so") {
  for (const char* wrong : {"",
                            "8",
                            "8:",
                            ":1",
                            "8:1:1",
                            "(2,4):(8)",
                            "(2,4)",
                            "(2,4:8,1)",
                            "(2,,4):(8,1,1)",
                            "():()",
                            "( 2,4):(8,1)",
                            " 8:1",
                            "8:1 ",
                            "0:1",
                            "-2:1",
                            "2:0",
                            "2:-1",
                            "99999999999999999999:1",
                            "(2,4):(8,1",
                            "2,4:8,1",
                            "(9223372036854775807,2):(1,1)"}) {
    CAPTURE(wrong);
    const auto parsed = parse_layout(wrong);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().message.find("is not a layout: ") != std::string::npos);
  }
  CHECK(parse_layout("(2,4):(8)").error().message ==
        "\"(2,4):(8)\" is not a layout: it has 2 sizes and 1 strides; write sizes and strides like 8:1 or (2,4):(8,1)");
  CHECK(layout("1:0") == Layout{});
  CHECK(layout("(1):(0)") == Layout{{{1, 0}}});
  CHECK(layout("1:5") == Layout{{{1, 5}}});
}

}  // namespace meshplan
