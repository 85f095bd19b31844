#include "cost/shift_price.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/exchange_phase.h"
#include "cost/pipeline.h"
#include "transfer/shift_traffic.h"

namespace meshplan {
namespace {

ExchangeTraffic in_shifts(ExchangeTraffic traffic, const ShiftTraffic& shifts, int64_t at_once) {
  traffic.phase = shifts.fullest(at_once);
  return traffic;
}

// In the multiple of so many stages that takes least time.
ShiftPrice priced_in_stages(const Topology& topology, ExchangeTraffic traffic, int64_t stages) {
  const InChunks best = best_in_chunks(topology, traffic, stages);
  ShiftPrice price;
  price.chunks = best.chunks;
  price.predicted_ps = best.ps;
  price.traffic = std::move(traffic);
  return price;
}

// A phase whose chunks pay every peer once in all, and each of them no more than the latency.
PhaseTime with_peers_once(const Topology& topology, const Traffic& traffic) {
  Traffic twice = traffic;
  for (int64_t& peers : twice.peers) peers = saturating_mul(peers, 2);
  PhaseTime time = phase_time(topology, traffic, Peers::number);
  const int64_t peers_ps =
      saturating_add(phase_time(topology, twice, Peers::number).latency_ps, -time.latency_ps);
  time.latency_ps = saturating_add(time.latency_ps, -peers_ps);
  time.transfer_ps = saturating_add(time.transfer_ps, peers_ps);
  return time;
}

}  // namespace

ShiftPrice best_in_shifts(const Topology& topology, const ExchangeTraffic& whole,
                          const ShiftTraffic& shifts) {
  ShiftPrice best;
  const int64_t most = std::min(most_at_once_tried, shifts.shifts());
  for (int64_t at_once = 1; at_once <= most; ++at_once) {
    const int64_t stages = stages_of(shifts.shifts(), at_once);
    if (stages > most_chunks) continue;
    ShiftPrice price = priced_in_stages(topology, in_shifts(whole, shifts, at_once), stages);
    price.at_once = at_once;
    if (price.predicted_ps < best.predicted_ps) best = std::move(price);
  }
  return best;
}

std::optional<ShiftPrice> price_in_shifts(const Topology& topology, const ExchangeTraffic& whole,
                                          const ShiftTraffic& shifts, int64_t at_once,
                                          int64_t chunks) {
  const int64_t stages = stages_of(shifts.shifts(), at_once);
  if (chunks % stages != 0) return std::nullopt;
  ShiftPrice price;
  price.at_once = at_once;
  price.chunks = chunks;
  price.traffic = in_shifts(whole, shifts, at_once);
  price.predicted_ps = in_chunks_ps(topology, price.traffic, chunks);
  return price;
}

int64_t least_in_shifts_ps(const Topology& topology, const ExchangeTraffic& whole) {
  const auto& peers = whole.phase[0].peers;
  const int64_t stages =
      ceil_div(*std::max_element(peers.begin(), peers.end()), most_at_once_tried);
  if (stages > most_chunks) return INT64_MAX;
  const auto with_one_peer = [&](Traffic traffic) {
    for (int64_t& here : traffic.peers) here = std::min<int64_t>(here, 1);
    return phase_time(topology, traffic, Peers::number);
  };
  const PhaseTime share = with_one_peer(whole.phase[1]);
  // What a number of chunks takes is convex in it.
  const auto in_chunks = [&](const PhaseTime& fetch) {
    return pipelined_ps(fetch, share, std::max(stages, best_chunks(fetch, share)));
  };
  const PhaseTime fetch = with_one_peer(whole.phase[0]);
  return std::max(in_chunks(fetch), in_chunks(with_peers_once(topology, whole.phase[0])));
}

}  // namespace meshplan
