// Two phases in chunks: while one chunk is shared inside units, the next comes over the links
// between them.
//
//     chunks 3     fetch   1 2 3
//                  share     1 2 3
//
// Every chunk is fetched and shared in steps of its own, which pay the latency each. A round lasts
// as long as the slower of its two steps; the first fetch and the last share have nothing beside
// them. With a = first latency + first transfer / k and b likewise of the second:
//
//     t(k) = a + b + (k - 1) max(a, b)
//
// So k = 1 is one phase after the other, and with many chunks the faster phase is hidden but for a
// chunk's share. Both phases use links of different levels, so neither slows the other down.
#pragma once

#include <cstdint>

namespace meshplan {

// The t of what a chunk takes to fetch and to share, which is exact; saturating. chunks >= 1.
[[nodiscard]] int64_t rounds_ps(int64_t fetch_ps, int64_t share_ps, int64_t chunks);

struct PhaseTime {
  int64_t latency_ps = 0;   // of one chunk, peers included
  int64_t transfer_ps = 0;  // of all chunks
};

// t(chunks) of the whole, rounded up once; saturating. chunks >= 1. Where steps take 1/chunks of
// their transfer, at most rounds_ps of their times.
[[nodiscard]] int64_t pipelined_ps(const PhaseTime& first, const PhaseTime& second, int64_t chunks);

// False: every chunk takes so long to start that no number of them takes less than one.
[[nodiscard]] bool may_pay_in_chunks(const PhaseTime& first, const PhaseTime& second);

// How many chunks take the least time, the fewest of several: 1 to `most_chunks`.
// Law: equal to trying all of them; more traffic or latency never takes less time.
[[nodiscard]] int64_t best_chunks(const PhaseTime& first, const PhaseTime& second);

}  // namespace meshplan
