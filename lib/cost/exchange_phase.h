// What one phase of an exchange takes, whole and in parts.
#pragma once

#include <cstdint>

#include "cost/collective_time.h"
#include "cost/pipeline.h"
#include "cost/topology.h"
#include "transfer/exchange_traffic.h"

namespace meshplan {

// Of one phase (0 or 1), its copies included; ps.
[[nodiscard]] int64_t phase_ps(const Topology& topology, const ExchangeTraffic& traffic,
                               size_t phase, Peers peers = Peers::number_and_rate);

// Latency and transfer of a phase; its copies are counted apart.
[[nodiscard]] PhaseTime phase_time(const Topology& topology, const Traffic& traffic, Peers peers);

// Of two phases in so many chunks. Copies of one chunk do not overlap those of another: all of them
// come on top.
[[nodiscard]] int64_t in_chunks_ps(const Topology& topology, const ExchangeTraffic& traffic,
                                   int64_t chunks);

// Two phases in the number of chunks, 2 or more, that takes the least time.
struct InChunks {
  int64_t chunks = 1;
  int64_t ps = INT64_MAX;  // where there is none
};
// Of the multiples of `stages`, up to most_chunks, the fewest of several. Between two numbers at
// which the bytes of a chunk begin to count otherwise the time is convex, but for what chunks are
// rounded up and unless several protocols serve exchanges.
//
//     h100, 200 MB from one peer inside    of a chunk 64 MiB at 82 GB/s, and all of it at 362: as a
//                                          whole 0.8 ms, in 2 chunks 1.6 ms, in 3 2.4 ms; in more
//                                          no longer
// Law: no other number takes less by more than a picosecond a chunk.
[[nodiscard]] InChunks best_in_chunks(const Topology& topology, const ExchangeTraffic& traffic,
                                      int64_t stages);

}  // namespace meshplan
