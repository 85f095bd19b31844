#include "cost/protocols.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/int_math.h"

namespace meshplan {
namespace {

// The outermost level whose switches join members of the group; -1: none.
int switch_level(const Topology& topology, std::span<const int64_t> members) {
  int found = -1;
  for (size_t l = 0; l < members.size(); ++l) {
    if (topology.levels[l].switch_mb_per_s > 0 && members[l] > 1) found = static_cast<int>(l);
  }
  return found;
}

class Ways {
 public:
  Ways(const Topology& topology, std::span<const int64_t> members, const CollectiveBytes& bytes)
      : topology_(topology), members_(members), bytes_(bytes) {}

  [[nodiscard]] ProtocolWay ring(const Protocol& protocol) const {
    ProtocolWay way = start(protocol, Pattern::ring, protocol.base_ns);
    way.traffic = collective_traffic(members_, bytes_);
    const int64_t g = members_.back();
    int64_t inner = 1;
    for (size_t l = 0; l < members_.size(); ++l) {
      const int64_t hops = floor_div(g, inner) - floor_div(g, members_[l]);
      way.steps[l] = saturating_mul(hops, row_of(bytes_.op).rounds);
      way.step_ns[l] = protocol.levels[l].hop_ns;
      way.mb_per_s[l] = share_of(topology_.levels[l].mb_per_s, protocol.levels[l].share);
      if (protocol.near_bytes > 0)
        way.far_mb_per_s[l] = share_of(topology_.levels[l].mb_per_s, protocol.levels[l].far_share);
      inner = members_[l];
    }
    return way;
  }
  [[nodiscard]] ProtocolWay tree(const Protocol& protocol) const {
    ProtocolWay way = start(protocol, Pattern::tree, protocol.base_ns);
    branch(way, 0);
    if (members_[0] > 1) {
      way.steps[0] = 2 * (members_[0] - 1);
      way.step_ns[0] = protocol.levels[0].hop_ns;
    }
    return way;
  }
  [[nodiscard]] ProtocolWay switches(const Protocol& protocol, int outermost) const {
    ProtocolWay way = start(protocol, Pattern::switches, protocol.switch_ns);
    branch(way, static_cast<size_t>(outermost) + 1);
    for (size_t l = 0; l <= static_cast<size_t>(outermost); ++l) {
      const TopologyLevel& level = topology_.levels[l];
      way.mb_per_s[l] = level.switch_mb_per_s > 0 ? level.switch_mb_per_s : level.mb_per_s;
    }
    return way;
  }

 private:
  static ProtocolWay start(const Protocol& protocol, Pattern pattern, int64_t ns) {
    ProtocolWay way;
    way.protocol = &protocol;
    way.pattern = pattern;
    way.start_ns = ns;
    return way;
  }
  // Tree steps over the levels from `first` on, and what a tree moves over all of them.
  void branch(ProtocolWay& way, size_t first) const {
    const int64_t g = members_.back();
    std::array<int64_t, max_levels> shares{};
    int64_t inner = 1;
    for (size_t l = 0; l < members_.size(); ++l) {
      const ProtocolLevel& level = way.protocol->levels[l];
      way.mb_per_s[l] = share_of(topology_.levels[l].mb_per_s, level.tree_share);
      if (members_[l] != inner) {
        shares[l] = saturating_mul(2, floor_div(g, inner));
        way.traffic.peers[l] = 1;
        if (l >= first) {
          way.steps[l] = 2 * doublings(floor_div(members_[l], inner));
          way.step_ns[l] = level.tree_ns;
        }
      }
      inner = members_[l];
    }
    set_shares(way.traffic, bytes_.whole, std::span(shares).first(members_.size()), g);
  }

  const Topology& topology_;
  std::span<const int64_t> members_;
  const CollectiveBytes& bytes_;
};

}  // namespace

int64_t doublings(int64_t count) {
  int64_t steps = 0;
  for (int64_t reached = 1; reached < count; reached = saturating_mul(reached, 2)) ++steps;
  return steps;
}

int64_t reached_by_switches(const Topology& topology, size_t level) {
  const TopologyLevel& at = topology.levels[level];
  const int64_t most = level + 1 == topology.levels.size() ? INT64_MAX : at.ranks;
  return at.switch_mb_per_s - at.switch_mb_per_s / most;
}

int64_t latency_ns(const ProtocolWay& way) {
  int128 ns = way.start_ns;
  for (size_t l = 0; l < way.steps.size(); ++l) ns += int128{way.steps[l]} * way.step_ns[l];
  return saturated(ns);
}

int64_t way_ps(const Topology& topology, const ProtocolWay& way, int64_t copied_bytes) {
  const auto transfer = [&](int64_t bytes, int64_t denominator, int64_t mb_per_s) {
    return transfer_and_copies_ps(bytes, denominator, mb_per_s, copied_bytes,
                                  topology.copy_mb_per_s);
  };
  int64_t slowest = transfer(0, 1, 1);
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    if (way.traffic.bytes[l] == 0) continue;
    slowest =
        std::max(slowest, transfer(way.traffic.bytes[l], way.traffic.denominator, way.mb_per_s[l]));
    if (way.far_mb_per_s[l] == 0) continue;
    const int64_t far =
        far_bytes(way.traffic.bytes[l], way.traffic.denominator, way.protocol->near_bytes);
    slowest = std::max(slowest, transfer(far, way.traffic.denominator, way.far_mb_per_s[l]));
  }
  return saturating_add(saturating_mul(latency_ns(way), 1000), slowest);
}

ProtocolWay fastest_way(const Topology& topology, std::span<const int64_t> members,
                        const CollectiveBytes& bytes) {
  const Ways ways(topology, members, bytes);
  const int switched = bytes.op == Op::all_reduce ? switch_level(topology, members) : -1;
  ProtocolWay fastest;
  int64_t least = INT64_MAX;
  const auto consider = [&](const ProtocolWay& way) {
    const int64_t ps = way_ps(topology, way, bytes.copied);
    if (fastest.protocol != nullptr && ps >= least) return;
    least = ps;
    fastest = way;
  };
  for (const Protocol& protocol : topology.protocols) {
    if (!serves(protocol, bytes.op)) continue;
    if (protocol.most_bytes > 0 && bytes.whole > protocol.most_bytes) continue;
    consider(ways.ring(protocol));
    if (bytes.op != Op::all_reduce) continue;
    if (protocol.trees) consider(ways.tree(protocol));
    if (protocol.switch_ns > 0 && switched >= 0) consider(ways.switches(protocol, switched));
  }
  return fastest;
}

int64_t protocols_ps(const Topology& topology, std::span<const int64_t> members,
                     const CollectiveBytes& bytes) {
  const int64_t ps = way_ps(topology, fastest_way(topology, members, bytes), bytes.copied);
  if (!row_of(bytes.op).pays_per_peer) return ps;
  const Traffic traffic = collective_traffic(members, bytes);
  return std::max(ps, traffic_ps(topology, traffic, peers_of(bytes.op), bytes.copied));
}

ProtocolWay fastest_exchange(const Topology& topology, const Traffic& traffic,
                             int64_t copied_bytes) {
  int64_t moved = 0;
  for (const int64_t bytes : traffic.bytes) moved = saturating_add(moved, bytes);
  ProtocolWay fastest;
  int64_t least = INT64_MAX;
  for (const Protocol& protocol : topology.protocols) {
    if (!serves(protocol, Op::exchange)) continue;
    if (protocol.most_bytes > 0 && moved > saturating_mul(protocol.most_bytes, traffic.denominator))
      continue;
    ProtocolWay way;
    way.protocol = &protocol;
    way.start_ns = protocol.base_ns;
    way.traffic = traffic;
    for (size_t l = 0; l < topology.levels.size(); ++l) {
      const ProtocolLevel& at = protocol.levels[l];
      way.steps[l] = traffic.peers[l];
      way.step_ns[l] = at.hop_ns;
      way.mb_per_s[l] = share_of(topology.levels[l].mb_per_s, at.share);
      if (protocol.near_bytes > 0)
        way.far_mb_per_s[l] = share_of(topology.levels[l].mb_per_s, at.far_share);
    }
    const int64_t ps = way_ps(topology, way, copied_bytes);
    if (fastest.protocol != nullptr && ps >= least) continue;
    least = ps;
    fastest = way;
  }
  return fastest;
}

int64_t exchange_protocols_ps(const Topology& topology, const Traffic& traffic,
                              int64_t copied_bytes) {
  return way_ps(topology, fastest_exchange(topology, traffic, copied_bytes), copied_bytes);
}

namespace {

// MB/s that nothing comes above over the level: an exchange and an all_to_all take no less than by
// levels, any other collective the share of a protocol. Of a fit, whose shares may all be small, it
// is far less than the level's number. Measured tables and switches know neither.
int64_t reached_over(const Topology& topology, size_t l) {
  const TopologyLevel& level = topology.levels[l];
  if (topology.protocols.empty() || !topology.tables.empty() || unserved_op(topology.protocols))
    return level.mb_per_s;
  int64_t reached = exchange_mb_per_s(level);
  for (const Protocol& protocol : topology.protocols) {
    if (protocol.switch_ns > 0) return level.mb_per_s;
    if (protocol.ops != 0 && (protocol.ops & default_ops) == 0) continue;
    const ProtocolLevel& at = protocol.levels[l];
    reached = std::max(reached, share_of(level.mb_per_s, at.share));
    if (protocol.trees) reached = std::max(reached, share_of(level.mb_per_s, at.tree_share));
  }
  return std::min(reached, level.mb_per_s);
}

}  // namespace

Topology bound_topology(const Topology& topology, bool reduces) {
  Topology bound;
  bound.levels = topology.levels;
  bound.copy_mb_per_s = topology.copy_mb_per_s;
  bound.tables = topology.tables;
  for (size_t l = 0; l < bound.levels.size(); ++l) {
    TopologyLevel& level = bound.levels[l];
    level.peer_mb_per_s = level.peer_bytes = level.near_bytes = level.far_mb_per_s = 0;
    const int64_t reached = reached_over(topology, l);
    const int64_t exchanged = saturating_mul(level.mb_per_s, level.exchange_percent);
    level.exchange_percent = std::min<int64_t>(100, ceil_div(exchanged, reached));
    level.mb_per_s = reached;
    if (reduces) level.mb_per_s = std::max(level.mb_per_s, reached_by_switches(topology, l));
    level.switch_mb_per_s = 0;
    // A step that reaches the level takes one hop over it at least.
    for (const Protocol& protocol : topology.protocols) {
      if ((protocol.ops & default_ops) == 0 && protocol.ops != 0)
        continue;  // of neither of the three
      const ProtocolLevel& at = protocol.levels[l];
      int64_t least = saturating_add(protocol.base_ns, at.hop_ns);
      if (reduces && protocol.trees)
        least = std::min(least, saturating_add(protocol.base_ns, l == 0 ? at.hop_ns : at.tree_ns));
      if (reduces && protocol.switch_ns > 0) least = std::min(least, protocol.switch_ns);
      level.latency_ns = std::min(level.latency_ns, least);
    }
  }
  return bound;
}

}  // namespace meshplan
