// What a step moves over the levels of a topology, and how long that takes: the cost model of
// levels, recounted.
//
//   t = latency of the outermost level used
//       + sum over levels of per_peer_ns * peers (between pairs only)
//       + the largest over levels of bytes / bandwidth and, between pairs, of the bytes of the mean
//         peer, or as many of them as the level holds to that, / what one peer reaches
//       + copied bytes / copy bandwidth
//
// in picoseconds, rounded up once. Between pairs (exchange, all_to_all) a level has
// exchange_percent of its bandwidth.
#pragma once

#include <array>
#include <cstdint>

#include "base/int_math.h"
#include "plan/plan.h"

namespace meshplan::verification {

constexpr size_t most_levels = 8;

// Per level the most that any rank receives or sends, in units of 1 / denominator bytes, and the
// most ranks that it does so with. A level without bytes and peers is not used.
struct LevelTraffic {
  std::array<int64_t, most_levels> bytes{};
  std::array<int64_t, most_levels> peers{};
  int64_t denominator = 1;
};

// The same of exact numerators; where one of them is beyond 64 bits, of whole bytes, rounded up.
[[nodiscard]] LevelTraffic held_in_64_bits(const std::array<int128, most_levels>& numerators,
                                           int64_t denominator);

struct Quotient {
  int128 dividend = 0;
  int128 divisor = 1;
};
// Rounded up, at most INT64_MAX.
[[nodiscard]] int64_t rounded_up(const Quotient& q);
// The sum of both, rounded up once.
[[nodiscard]] int64_t rounded_up(const Quotient& a, const Quotient& b);

[[nodiscard]] int64_t time_ps(const Topology& topology, const LevelTraffic& traffic,
                              bool between_pairs, int64_t copied_bytes);

// Two phases, everything cut into `chunks`: round i fetches chunk i and shares chunk i - 1, so that
// chunks + 1 rounds last
//
//     a chunk fetched + (chunks - 1) x the longer of that and a chunk shared + a chunk shared
//
// where a chunk takes its phase's latency, peers and 1/chunks of its bytes, rounded up. Copies come
// on top, unpipelined. One chunk: one phase after the other, each with its copies.
struct PhaseTraffic {
  LevelTraffic traffic;
  int64_t copied_bytes = 0;
};
[[nodiscard]] int64_t two_phases_ps(const Topology& topology, const PhaseTraffic& first,
                                    const PhaseTraffic& second, int64_t chunks);

// Whether levels alone price exchanges: no measured tables.
[[nodiscard]] bool priced_by_levels(const Topology& topology);

}  // namespace meshplan::verification
