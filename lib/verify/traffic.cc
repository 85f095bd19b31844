#include "verify/traffic.h"

#include <algorithm>
#include <limits>

#include "base/int_math.h"

namespace meshplan::verification {

int64_t quotient_up(int64_t a, int64_t b, int64_t c, int64_t d) {
  const int128 dividend = static_cast<int128>(a) * b;
  const int128 divisor = static_cast<int128>(c) * d;
  if (dividend <= 0 || divisor <= 0) return 0;
  const int128 quotient = (dividend - 1) / divisor + 1;
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  return quotient > most ? most : static_cast<int64_t>(quotient);
}

int64_t time_ps(const Topology& topology, const LevelTraffic& traffic, bool between_pairs,
                int64_t copied_bytes) {
  int64_t latency_ns = 0;
  int64_t peers_ns = 0;
  int64_t slowest = 0;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    if (traffic.bytes[l] == 0 && traffic.peers[l] == 0) continue;
    const TopologyLevel& level = topology.levels[l];
    latency_ns = level.latency_ns;
    const bool shared = between_pairs && level.exchange_percent != 100;
    if (between_pairs)
      peers_ns = saturating_add(peers_ns, saturating_mul(level.per_peer_ns, traffic.peers[l]));
    const int64_t bytes = shared ? saturating_mul(traffic.bytes[l], 100) : traffic.bytes[l];
    const int64_t bandwidth =
        shared ? saturating_mul(level.mb_per_s, level.exchange_percent) : level.mb_per_s;
    slowest = std::max(slowest, quotient_up(bytes, 1'000'000, traffic.denominator, bandwidth));
  }
  const int64_t copying = topology.copy_mb_per_s > 0
                              ? quotient_up(copied_bytes, 1'000'000, 1, topology.copy_mb_per_s)
                              : 0;
  const int64_t fixed = saturating_mul(saturating_add(latency_ns, peers_ns), 1000);
  return saturating_add(saturating_add(fixed, slowest), copying);
}

bool priced_by_levels(const Topology& topology) {
  return topology.model.empty() && topology.tables.empty();
}

}  // namespace meshplan::verification
