// How an overlap is cut over the holders that it comes from (README.md, "One phase").
//
//     [0:3, 2:9] in 3 parts     cut along dim 1, 7 wide: 3 2 2
//                               [0:3, 2:5] [0:3, 5:7] [0:3, 7:9]
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/int_math.h"
#include "plan/plan.h"
#include "tensor/box.h"

namespace meshplan {

enum class ExchangeCut : uint8_t {
  even,   // a near-equal part from each nearest holder
  whole,  // all of it from one holder, by turns
};

// Which members of a unit share the fetching of the first of two phases (README.md, "Two phases").
enum class Fetchers : uint8_t {
  wanting,          // those that want a box share what the unit misses of it
  all,              // all that are on the target's side share all that the unit misses
  all_in_laps,      // the same, each twice in turn, so that each asks two holders at least
  wanting_in_laps,  // those that want a box, in twice as many parts, so that each has two at least
};
[[nodiscard]] constexpr bool all_fetch(Fetchers fetchers) {
  return fetchers == Fetchers::all || fetchers == Fetchers::all_in_laps;
}
[[nodiscard]] constexpr int64_t laps_of(Fetchers fetchers) {
  return fetchers == Fetchers::all_in_laps || fetchers == Fetchers::wanting_in_laps ? most_laps : 1;
}
[[nodiscard]] Fetchers fetchers_of(const Step& step);
void set_fetchers(Fetchers fetchers, Step& step);

// Near-equal part `index` of `length` cut into `parts`, the first ones longer by one: its size.
[[nodiscard]] constexpr int64_t near_equal(int64_t length, int64_t parts, int64_t index) {
  const int64_t each = floor_div(length, parts);
  return each + (index < length - each * parts ? 1 : 0);
}
// Where it begins.
[[nodiscard]] constexpr int64_t near_equal_begin(int64_t length, int64_t parts, int64_t index) {
  const int64_t each = floor_div(length, parts);
  return index * each + std::min(index, length - each * parts);
}

// Part `index` of `box` cut along its longest dim (ties: the lowest) into near-equal `parts`; empty
// where there are more parts than slices. A scalar is one part.
[[nodiscard]] Box even_part(const Box& box, int64_t parts, int64_t index);
// The same along dim `dim`.
[[nodiscard]] Box part_along(Box box, int dim, int64_t parts, int64_t index);
// Slices of `box` along dim `dim`; a scalar is one slice.
[[nodiscard]] Box slices_of(Box box, int dim, int64_t first, int64_t slices);

}  // namespace meshplan
