#include "cost/collective_time.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "cost/protocols.h"

namespace meshplan {

int64_t transfer_and_copies_ps(int64_t bytes, int64_t denominator, int64_t mb_per_s,
                               int64_t copied_bytes, int64_t copy_mb_per_s, int64_t scale) {
  if (copied_bytes == 0 || copy_mb_per_s == 0)
    return transfer_ps(bytes, denominator, mb_per_s, scale);
  const int128 by = int128{denominator} * mb_per_s;
  if (by > INT64_MAX)
    return saturating_add(transfer_ps(bytes, denominator, mb_per_s, scale),
                          transfer_ps(copied_bytes, 1, copy_mb_per_s));
  const int128 moved = int128{bytes} * scale;
  const int128 copied = int128{copied_bytes} * by_mb;
  const int128 rest = moved % by * copy_mb_per_s + copied % copy_mb_per_s * by;
  const int128 all = by * copy_mb_per_s;
  return saturated(moved / by + copied / copy_mb_per_s + (rest + all - 1) / all);
}

namespace {

inline int64_t plain_transfer_ps(int64_t bytes, int64_t denominator, int64_t mb_per_s,
                                 int64_t scale) {
  if (bytes == 0) return 0;
  int64_t scaled = 0;
  int64_t divisor = 0;
  if (!__builtin_mul_overflow(bytes, scale, &scaled) &&
      !__builtin_mul_overflow(denominator, mb_per_s, &divisor)) {
    return ceil_div(scaled, divisor);
  }
  int128 wide = static_cast<int128>(bytes) * scale;
  int128 by = static_cast<int128>(denominator) * mb_per_s;
  int128 quotient = wide / by + (wide % by != 0);
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  return quotient > most ? most : static_cast<int64_t>(quotient);
}

}  // namespace

int64_t transfer_ps(int64_t bytes, int64_t denominator, int64_t mb_per_s, int64_t scale) {
  return plain_transfer_ps(bytes, denominator, mb_per_s, scale);
}

int64_t least_transfer_ps(const TopologyLevel& level, int64_t bytes, int64_t denominator,
                          int64_t peers, const PaidPeers& paid) {
  if (bytes == 0) return 0;
  const int64_t by_links = transfer_ps(bytes, denominator, exchange_mb_per_s(level));
  if (level.peer_mb_per_s == 0) return by_links;
  // Of very many peers it is only said that links do not get faster by them.
  constexpr int64_t most_looked_at = 8;
  const int64_t first = std::max<int64_t>(1, peers);
  int64_t least = INT64_MAX;
  for (int64_t count = first;; ++count) {
    const int64_t beyond = saturating_mul(count - peers, level.per_peer_ns);
    const int64_t paid_ns = std::clamp<int64_t>(count - peers, 0, paid.count) *
                            std::min(paid.each_ns, level.per_peer_ns);
    const int64_t more = saturating_mul(beyond - paid_ns, 1000);
    if (count - first == most_looked_at) return std::min(least, saturating_add(more, by_links));
    const int64_t all = saturating_mul(denominator, count);
    const int64_t held =
        level.peer_bytes == 0 ? bytes : std::min(bytes, saturating_mul(level.peer_bytes, all));
    const int64_t by_peers = transfer_ps(held, all, level.peer_mb_per_s);
    least = std::min(least, saturating_add(more, std::max(by_links, by_peers)));
    if (by_peers <= by_links || more >= least) return least;
  }
}

int64_t far_bytes(int64_t bytes, int64_t denominator, int64_t near_bytes) {
  if (near_bytes == 0) return 0;
  return std::max<int64_t>(0, bytes - saturating_mul(near_bytes, denominator));
}

int64_t held_to_peer_rate(const TopologyLevel& level, const Traffic& traffic, size_t l) {
  if (level.peer_mb_per_s == 0 || traffic.peers[l] == 0) return 0;
  if (level.peer_bytes == 0) return traffic.bytes[l];
  const int64_t most =
      saturating_mul(level.peer_bytes, saturating_mul(traffic.denominator, traffic.peers[l]));
  return std::min(traffic.bytes[l], most);
}

int64_t traffic_ps(const Topology& topology, const Traffic& traffic, Peers counted,
                   int64_t copied_bytes) {
  const bool exchange = counted != Peers::none;
  int64_t latency = 0;
  int64_t peers = 0;
  const bool copies = copied_bytes != 0 && topology.copy_mb_per_s != 0;
  const auto transfer = [&](int64_t bytes, int64_t denominator, int64_t mb_per_s,
                            int64_t scale = by_mb) {
    return copies ? transfer_and_copies_ps(bytes, denominator, mb_per_s, copied_bytes,
                                           topology.copy_mb_per_s, scale)
                  : plain_transfer_ps(bytes, denominator, mb_per_s, scale);
  };
  int64_t slowest = transfer(0, 1, 1);
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    const TopologyLevel& level = topology.levels[l];
    if (traffic.bytes[l] == 0 && traffic.peers[l] == 0) continue;
    latency = level.latency_ns;
    if (exchange)
      peers = saturating_add(peers, saturating_mul(level.per_peer_ns, traffic.peers[l]));
    const int64_t bytes = traffic.bytes[l];
    const int64_t ps = exchange && level.exchange_percent != 100
                           ? transfer(bytes, traffic.denominator,
                                      level.mb_per_s * level.exchange_percent, by_mb_percent)
                           : transfer(bytes, traffic.denominator, level.mb_per_s);
    slowest = std::max(slowest, ps);
    if (counted != Peers::number_and_rate) continue;
    if (const int64_t far = far_bytes(traffic.bytes[l], traffic.denominator, level.near_bytes))
      slowest = std::max(slowest, transfer(far, traffic.denominator, level.far_mb_per_s));
    if (level.peer_mb_per_s == 0) continue;
    const int64_t held = held_to_peer_rate(level, traffic, l);
    const int64_t shared = saturating_mul(traffic.denominator, traffic.peers[l]);
    if (held == 0) continue;
    slowest = std::max(slowest, transfer(held, shared, level.peer_mb_per_s));
  }
  const int64_t ps = saturating_add(saturating_mul(saturating_add(latency, peers), 1000), slowest);
  if (counted != Peers::number_and_rate || !by_protocols(topology, Op::exchange)) return ps;
  const bool moves = std::any_of(traffic.peers.begin(), traffic.peers.end(),
                                 [](int64_t peers_here) { return peers_here > 0; });
  if (!moves) return ps;
  return std::max(ps, exchange_protocols_ps(topology, traffic, copied_bytes));
}

void set_shares(Traffic& traffic, int64_t whole, std::span<const int64_t> shares,
                int64_t denominator) {
  traffic.denominator = denominator;
  bool fits = true;
  for (size_t l = 0; l < shares.size(); ++l)
    fits = !__builtin_mul_overflow(whole, shares[l], &traffic.bytes[l]) && fits;
  if (fits) return;
  traffic.denominator = 1;
  for (size_t l = 0; l < shares.size(); ++l) {
    const int128 numerator = int128{whole} * shares[l];
    traffic.bytes[l] = saturated((numerator + denominator - 1) / denominator);
  }
}

Traffic collective_traffic(std::span<const int64_t> members, const CollectiveBytes& bytes) {
  Traffic traffic;
  std::array<int64_t, max_levels> shares{};
  int64_t inner = 1;
  const int64_t g = members.back();
  for (size_t l = 0; l < members.size(); ++l) {
    const int64_t m = members[l];
    if (m == inner) continue;
    if (row_of(bytes.op).pays_per_peer) {
      shares[l] = m - inner;
      traffic.peers[l] = m - inner;
    } else {
      // whole * (1/inner - 1/m) over the common denominator g, which every m divides.
      const int64_t share = floor_div(g, inner) - floor_div(g, m);
      shares[l] = saturating_mul(share, row_of(bytes.op).rounds);
      traffic.peers[l] = 1;
    }
    inner = m;
  }
  set_shares(traffic, bytes.whole, std::span(shares).first(members.size()), g);
  return traffic;
}

std::vector<int64_t> members_apart(const GroupShape& shape) {
  size_t outermost = 0;
  for (size_t l = 0; l < shape.reach.size(); ++l) {
    if (shape.reach[l] > 0) outermost = l;
  }
  std::vector<int64_t> members(shape.members.size(), 1);
  std::fill(members.begin() + static_cast<std::ptrdiff_t>(outermost), members.end(),
            shape.members.back());
  return members;
}

int64_t collective_ps(const Topology& topology, const GroupShape& shape,
                      const CollectiveBytes& bytes) {
  if (shape.members.back() == 1 && shape.uniform) return 0;
  if (shape.uniform && by_protocols(topology, bytes.op))
    return protocols_ps(topology, shape.members, bytes);
  if (shape.uniform)
    return traffic_ps(topology, collective_traffic(shape.members, bytes), peers_of(bytes.op),
                      bytes.copied);
  // Units hold different numbers of members: an exchange of the padded pieces inside the group,
  // each from the one member that owns it; by protocols also a ring or tree over the links of the
  // outermost level alone.
  Traffic traffic;
  for (size_t l = 0; l < shape.reach.size(); ++l) {
    traffic.bytes[l] = saturating_mul(bytes.piece, shape.reach[l]);
    traffic.peers[l] = shape.reach[l];
  }
  const int64_t padded = saturating_mul(
      traffic_ps(topology, traffic, Peers::number_and_rate, bytes.copied), row_of(bytes.op).rounds);
  if (row_of(bytes.op).pays_per_peer || !by_protocols(topology, bytes.op)) return padded;
  return std::min(padded, protocols_ps(topology, members_apart(shape), bytes));
}

int64_t collective_ps(const Topology& topology, const std::vector<GroupShape>& shapes,
                      const CollectiveBytes& bytes) {
  int64_t slowest = 0;
  for (const GroupShape& shape : shapes)
    slowest = std::max(slowest, collective_ps(topology, shape, bytes));
  return slowest;
}

}  // namespace meshplan
