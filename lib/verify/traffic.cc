#include "verify/traffic.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan::verification {

LevelTraffic held_in_64_bits(const std::array<int128, most_levels>& numerators,
                             int64_t denominator) {
  LevelTraffic traffic;
  const auto wide = [](int128 numerator) { return numerator > INT64_MAX; };
  const bool whole = std::any_of(numerators.begin(), numerators.end(), wide);
  traffic.denominator = whole ? 1 : denominator;
  for (size_t l = 0; l < most_levels; ++l)
    traffic.bytes[l] =
        whole ? rounded_up({numerators[l], denominator}) : static_cast<int64_t>(numerators[l]);
  return traffic;
}

int64_t rounded_up(const Quotient& q) {
  if (q.dividend <= 0 || q.divisor <= 0) return 0;
  return saturated((q.dividend - 1) / q.divisor + 1);
}

int64_t rounded_up(const Quotient& a, const Quotient& b) {
  // Divisors that are too wide to multiply: each by itself.
  if (a.divisor > INT64_MAX || b.divisor > INT64_MAX)
    return saturating_add(rounded_up(a), rounded_up(b));
  const int128 whole = a.dividend / a.divisor + b.dividend / b.divisor;
  const Quotient rest{a.dividend % a.divisor * b.divisor + b.dividend % b.divisor * a.divisor,
                      a.divisor * b.divisor};
  return saturating_add(saturated(whole), rounded_up(rest));
}

namespace {

// The least that protocols say of an exchange; 0: none does, or nothing moves.
int64_t pairs_protocol_ps(const Topology& topology, const LevelTraffic& traffic,
                          const Quotient& copies) {
  const size_t levels = topology.levels.size();
  int128 bytes = 0;
  int64_t peers = 0;
  for (size_t l = 0; l < levels; ++l) {
    bytes += traffic.bytes[l];
    peers = saturating_add(peers, traffic.peers[l]);
  }
  int64_t least = 0;
  for (const Protocol& p : topology.protocols) {
    if ((p.ops >> static_cast<unsigned>(Op::exchange) & 1U) == 0 || peers == 0) continue;
    if (p.most_bytes > 0 && bytes > int128{p.most_bytes} * traffic.denominator) continue;
    int128 ns = p.base_ns;
    int64_t slowest = rounded_up(copies);
    for (size_t l = 0; l < levels; ++l) {
      const auto rate = [&](int64_t share) {
        return std::max<int64_t>(1, topology.levels[l].mb_per_s * share / whole_share);
      };
      ns += int128{traffic.peers[l]} * p.levels[l].hop_ns;
      const auto held_to = [&](int128 moved, int64_t mb_per_s) {
        if (moved <= 0) return;
        slowest = std::max(
            slowest,
            rounded_up({moved * 1'000'000, int128{traffic.denominator} * mb_per_s}, copies));
      };
      held_to(traffic.bytes[l], rate(p.levels[l].share));
      if (p.near_bytes > 0)
        held_to(traffic.bytes[l] - int128{p.near_bytes} * traffic.denominator,
                rate(p.levels[l].far_share));
    }
    const int64_t ps = saturating_add(saturating_mul(saturated(ns), 1000), slowest);
    least = least == 0 ? ps : std::min(least, ps);
  }
  return least;
}

}  // namespace

int64_t time_ps(const Topology& topology, const LevelTraffic& traffic, bool between_pairs,
                int64_t copied_bytes) {
  int64_t latency_ns = 0;
  int64_t peers_ns = 0;
  Quotient copies;
  if (topology.copy_mb_per_s > 0)
    copies = {int128{copied_bytes} * 1'000'000, topology.copy_mb_per_s};
  int64_t slowest = rounded_up(copies);  // with the copies
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    if (traffic.bytes[l] == 0 && traffic.peers[l] == 0) continue;
    const TopologyLevel& level = topology.levels[l];
    latency_ns = level.latency_ns;
    const bool shared = between_pairs && level.exchange_percent != 100;
    if (between_pairs)
      peers_ns = saturating_add(peers_ns, saturating_mul(level.per_peer_ns, traffic.peers[l]));
    const int64_t parts = shared ? 100 : 1;  // of the bandwidth
    const int64_t bandwidth =
        shared ? saturating_mul(level.mb_per_s, level.exchange_percent) : level.mb_per_s;
    const Quotient moved{int128{traffic.bytes[l]} * 1'000'000 * parts,
                         int128{traffic.denominator} * bandwidth};
    slowest = std::max(slowest, rounded_up(moved, copies));
    if (between_pairs && level.near_bytes > 0) {
      const int128 near = int128{level.near_bytes} * traffic.denominator;
      const Quotient far{(traffic.bytes[l] - near) * 1'000'000,
                         int128{traffic.denominator} * level.far_mb_per_s};
      if (far.dividend > 0) slowest = std::max(slowest, rounded_up(far, copies));
    }
    if (!between_pairs || level.peer_mb_per_s == 0) continue;
    const int64_t shared_by = saturating_mul(traffic.denominator, traffic.peers[l]);
    int64_t held = shared_by == 0 ? 0 : traffic.bytes[l];
    if (level.peer_bytes > 0) held = std::min(held, saturating_mul(level.peer_bytes, shared_by));
    if (held == 0) continue;
    slowest = std::max(
        slowest,
        rounded_up({int128{held} * 1'000'000, int128{shared_by} * level.peer_mb_per_s}, copies));
  }
  const int64_t ps =
      saturating_add(saturating_mul(saturating_add(latency_ns, peers_ns), 1000), slowest);
  return between_pairs ? std::max(ps, pairs_protocol_ps(topology, traffic, copies)) : ps;
}

int64_t two_phases_ps(const Topology& topology, const PhaseTraffic& first,
                      const PhaseTraffic& second, int64_t chunks) {
  if (chunks == 1) {
    return saturating_add(time_ps(topology, first.traffic, true, first.copied_bytes),
                          time_ps(topology, second.traffic, true, second.copied_bytes));
  }
  int64_t copies_ps = 0;
  const auto chunk_ps = [&](const PhaseTraffic& phase) {
    LevelTraffic chunk = phase.traffic;
    chunk.denominator = saturating_mul(chunk.denominator, chunks);
    if (topology.copy_mb_per_s > 0) {
      const Quotient copies{int128{phase.copied_bytes} * 1'000'000, topology.copy_mb_per_s};
      copies_ps = saturating_add(copies_ps, rounded_up(copies));
    }
    return time_ps(topology, chunk, true, 0);
  };
  const int64_t fetched = chunk_ps(first);
  const int64_t shared = chunk_ps(second);
  const int128 rounds = int128{fetched} + int128{chunks - 1} * std::max(fetched, shared) + shared;
  return saturating_add(saturated(rounds), copies_ps);
}

bool priced_by_levels(const Topology& topology) { return topology.tables.empty(); }

}  // namespace meshplan::verification
