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

}  // namespace meshplan
