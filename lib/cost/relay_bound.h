// What passing on takes at least: some ranks, the givers, have all that others, the takers, want,
// and what a taker passes on it got in an earlier wave (plan/bundle.h).
//
//     1 giver of 16 B, 2 takers that want it all, 1 B/s into and out of each
//
//     1 wave      all of it to both                                             32 s
//     2 waves     32/3 B, a half to each; then those halves on, the rest to     32/3 + 32/3 s
//                 both
//     k waves     16 (1 + 1 / (2k - 1)) s by the law
//
// Law. In k waves of times t_1 .. t_k, which add up to T, givers send; in others, of s together,
// takers alone do. Givers give away B a second, takers take in b together, and c from each other in
// the waves without givers. W bytes are wanted; N is the sum over them of the takers that want it,
// each counted m times at most. Then T >= W / B, and for every wave w
//
//     N <= m B (t_1 + .. + t_(w-1)) + B t_w + b (t_(w+1) + .. + t_k) + c s
//
// Proof. What is at takers behind wave w had left the givers before it, B a second, and lies at m
// takers at most, or the givers sent it in wave w, once for every B t_w. All else comes later.
// Counted m times: of a byte that more want any m arrivals count.
//
// So the sum of all waves exceeds N / b, or N / (m B), by a part of each wave: early in the first
// ones takers have little to pass on, and what is given in the last ones comes to few.
#pragma once

#include <cstdint>

namespace meshplan {

struct RelayNeed {
  int64_t leaving = 0;         // W, bytes
  int64_t arriving = 0;        // N
  int64_t copies = 1;          // m
  int64_t given_mb_per_s = 0;  // B; not above b
  int64_t taken_mb_per_s = 0;  // b
};

// Picoseconds of T + s for k waves in which givers send, latencies not counted: no schedule takes
// less. Laws: more waves, or a larger c, never take longer; in one wave without others N / B.
[[nodiscard]] int64_t least_relay_ps(const RelayNeed& need, int64_t waves,
                                     int64_t among_takers_mb_per_s);

}  // namespace meshplan
