// The model of protocols: how long a collective takes by the fastest way that a library has.
//
// A group has m_l members in one unit of level l, g in all. A way is a protocol and a pattern:
//
//   ring       rounds * sum of (g/m_(l-1) - g/m_l) hops of level l; bytes as in the levels model,
//              and those beyond near_bytes at the far share
//   tree       all_reduce: 2 * (m_0 - 1) hops along a chain inside level 0, then up and down
//              ceil(log2(m_l/m_(l-1))) tree steps of each level l outside; over level l twice the
//              bytes / m_(l-1)
//   switches   all_reduce: the levels up to the outermost that has switches take no hops, those
//              outside tree steps; bytes as of a tree
//
//     t = base + hops * hop_ns + max over l of bytes_l / (bandwidth_l * share_l) + copies
//
// in integer picoseconds, rounded up once, and the least over all ways of the protocols that serve
// the op and the size. A group whose units hold different numbers of members takes the least of
// that with m_l = 1 inside the outermost level that it needs and g from there on, and of an
// exchange of its padded pieces. An exchange takes a hop a peer and no less than by levels, an
// all_to_all no less than an exchange of the same. Laws: more bytes never take less; without a
// member, or without a level, a group that looks alike everywhere never takes longer.
#pragma once

#include <algorithm>
#include <span>

#include "cost/collective_time.h"

namespace meshplan {

enum class Pattern : uint8_t { ring, tree, switches };

// One way of a collective, before its time is taken.
struct ProtocolWay {
  const Protocol* protocol = nullptr;
  Pattern pattern = Pattern::ring;
  int64_t start_ns = 0;
  std::array<int64_t, max_levels> steps{};         // over each level
  std::array<int64_t, max_levels> step_ns{};       // of one of them
  std::array<int64_t, max_levels> mb_per_s{};      // that the bytes have
  std::array<int64_t, max_levels> far_mb_per_s{};  // and those beyond near_bytes
  Traffic traffic;
};
[[nodiscard]] int64_t latency_ns(const ProtocolWay& way);
[[nodiscard]] int64_t way_ps(const Topology& topology, const ProtocolWay& way,
                             int64_t copied_bytes);

// A share of a bandwidth in ten-thousandths, 1 MB/s at least: plans from before specs were held to
// least_share may have less, and a fit tries it.
[[nodiscard]] inline int64_t share_of(int64_t mb_per_s, int64_t share) {
  return std::max<int64_t>(1, mb_per_s * share / whole_share);
}
// ceil(log2(count)): the depth of a tree over so many.
[[nodiscard]] int64_t doublings(int64_t count);
// MB/s that no group comes above whose members in one unit are reduced by its switches: a group of
// m moves 2 (m-1)/m of its bytes, counted as 2. 0: the level has none.
[[nodiscard]] int64_t reached_by_switches(const Topology& topology, size_t level);

// Whether protocols price such a collective.
[[nodiscard]] inline bool by_protocols(const Topology& topology, Op op) {
  return std::any_of(topology.protocols.begin(), topology.protocols.end(),
                     [op](const Protocol& protocol) { return serves(protocol, op); });
}

// The fastest way; `members` as in GroupShape. by_protocols holds.
[[nodiscard]] ProtocolWay fastest_way(const Topology& topology, std::span<const int64_t> members,
                                      const CollectiveBytes& bytes);
[[nodiscard]] int64_t protocols_ps(const Topology& topology, std::span<const int64_t> members,
                                   const CollectiveBytes& bytes);

// The fastest way of what such traffic is exchanged in; its size is all that a rank moves.
// by_protocols holds.
[[nodiscard]] ProtocolWay fastest_exchange(const Topology& topology, const Traffic& traffic,
                                           int64_t copied_bytes);
[[nodiscard]] int64_t exchange_protocols_ps(const Topology& topology, const Traffic& traffic,
                                            int64_t copied_bytes);

// A topology of levels alone in which every step takes as long as in `topology`, or less: what
// bounds are taken in; it has no name. `reduces`: something is pending at either end, so that
// switches may help.
[[nodiscard]] Topology bound_topology(const Topology& topology, bool reduces);

}  // namespace meshplan
