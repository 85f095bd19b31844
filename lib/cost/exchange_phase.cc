#include "cost/exchange_phase.h"

#include "base/int_math.h"

namespace meshplan {

int64_t phase_ps(const Topology& topology, const ExchangeTraffic& traffic, size_t phase,
                 Peers peers) {
  const int64_t copied = saturating_mul(2, traffic.received[phase]);
  return traffic_ps(topology, traffic.phase[phase], peers, copied);
}

PhaseTime phase_time(const Topology& topology, const Traffic& traffic, Peers peers) {
  Traffic messages = traffic;
  messages.bytes = {};
  const int64_t latency = traffic_ps(topology, messages, peers, 0);
  return {latency, saturating_add(traffic_ps(topology, traffic, peers, 0), -latency)};
}

namespace {

// What one chunk takes in a phase.
int64_t chunk_ps(const Topology& topology, Traffic traffic, int64_t chunks) {
  traffic.denominator = saturating_mul(traffic.denominator, chunks);
  return traffic_ps(topology, traffic, Peers::number_and_rate, 0);
}

}  // namespace

int64_t in_chunks_ps(const Topology& topology, const ExchangeTraffic& traffic, int64_t chunks) {
  const auto& [first, second] = traffic.phase;
  int64_t ps =
      rounds_ps(chunk_ps(topology, first, chunks), chunk_ps(topology, second, chunks), chunks);
  if (topology.copy_mb_per_s > 0) {
    for (const int64_t received : traffic.received)
      ps = saturating_add(ps, transfer_ps(saturating_mul(2, received), 1, topology.copy_mb_per_s));
  }
  return ps;
}

}  // namespace meshplan
