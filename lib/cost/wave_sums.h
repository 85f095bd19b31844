// What waves take at least that must bring so much of several kinds of bytes.
//
//     wave 1 brings 1 B/s of x, wave 2 brings 4 B/s of x and 1 B/s of y     12 B of x, 2 B of y
//
//     12 B of x, at most 4 B/s of it in any wave     3 s at least
//     2 B of y, 1 B/s                                2 s
//
// Law. For any weights of the kinds, all waves together take at least the weighted sum of what must
// come, over the most of it that a second of any wave brings. Weights are looked for by the simplex
// method in fixed point, the same on every machine; what they prove is counted exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace meshplan {

// Of one kind.
struct WaveSum {
  int64_t bytes = 0;              // that must come
  std::vector<int64_t> mb_per_s;  // by wave
};

// Picoseconds; no times of waves that bring all of it add up to less.
[[nodiscard]] int64_t least_sum_ps(const std::vector<WaveSum>& sums, size_t waves);

}  // namespace meshplan
