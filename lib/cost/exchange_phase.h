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

}  // namespace meshplan
