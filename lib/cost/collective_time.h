// The time of one collective or exchange from its bytes per level.
//
//     t = latency of the outermost level used + per_peer_ns * peers (exchange, all_to_all)
//         + max over l of bytes_l / bandwidth_l, and of bytes_l / peers / what one peer reaches
//           (exchange, all_to_all)
//         + copied bytes / copy bandwidth
//
// of the model of levels; under that of protocols (cost/protocols.h) of exchanges, of all_to_alls
// and of groups that do not look alike everywhere.
//
// in integer picoseconds, rounded up once (each phase of an exchange, and each of the two rounds of
// an all_reduce whose units differ, by itself).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "plan/plan.h"
#include "transfer/level_map.h"
#include "transfer/traffic.h"

namespace meshplan {

// bytes * 1e6 / (denominator * mb_per_s) rounded up, saturating: picoseconds that `bytes /
// denominator` bytes take at mb_per_s (1e6 B/s). `scale`: 100 times as much where mb_per_s is.
constexpr int64_t by_mb = 1'000'000;
constexpr int64_t by_mb_percent = 100 * by_mb;
[[nodiscard]] int64_t transfer_ps(int64_t bytes, int64_t denominator, int64_t mb_per_s,
                                  int64_t scale = by_mb);

// The same with the time of copies after it, rounded up once where the divisors allow. No copies,
// or no copy bandwidth (0): the transfer alone.
[[nodiscard]] int64_t transfer_and_copies_ps(int64_t bytes, int64_t denominator, int64_t mb_per_s,
                                             int64_t copied_bytes, int64_t copy_mb_per_s,
                                             int64_t scale = by_mb);

// Sets what goes over each level to whole * shares[l] / denominator; where a numerator does not fit
// 64 bits, to whole bytes, rounded up.
void set_shares(Traffic& traffic, int64_t whole, std::span<const int64_t> shares,
                int64_t denominator);

// What the formula counts of a peer. A mean over peers falls where more traffic has more peers: at
// least what more traffic takes is what it takes without.
enum class Peers : uint8_t { none, number, number_and_rate };

// The formula above. Not `none`: exchange_percent applies and peers count. No traffic at all costs
// nothing.
[[nodiscard]] int64_t traffic_ps(const Topology& topology, const Traffic& traffic, Peers peers,
                                 int64_t copied_bytes);

// MB/s that exchanges and all_to_alls reach over links of the level; rounded up, as bounds need it.
[[nodiscard]] inline int64_t exchange_mb_per_s(const TopologyLevel& level) {
  return ceil_div(level.mb_per_s * level.exchange_percent, 100);
}

// Peers that are paid for, wherever they lie: so many, at most so much each.
struct PaidPeers {
  int64_t count = 0;
  int64_t each_ns = 0;
  bool operator==(const PaidPeers&) const = default;
};

// Of bytes / denominator that go over one level to or from so many peers or more: the least that
// they take and that peers beyond these cost, as more peers raise what all of them reach, ps. Of
// `paid` each may be one of those: it costs just what it takes more here.
// Law: latency, what `peers` and `paid` cost and this are at most what traffic_ps says of such an
// exchange.
//
//     h100, 5 MB from 1 peer or more     from 1: 5 MB at 25 GB/s; from 2: 14 us, 5 MB at 48 GB/s
[[nodiscard]] int64_t least_transfer_ps(const TopologyLevel& level, int64_t bytes,
                                        int64_t denominator, int64_t peers,
                                        const PaidPeers& paid = {});

// Of so many bytes a rank over a common denominator those that are beyond the near ones.
[[nodiscard]] int64_t far_bytes(int64_t bytes, int64_t denominator, int64_t near_bytes);

// The bytes of the mean peer that are held to what one peer reaches, over peers * denominator.
[[nodiscard]] int64_t held_to_peer_rate(const TopologyLevel& level, const Traffic& traffic,
                                        size_t l);

// What counts of a collective's peers.
[[nodiscard]] inline Peers peers_of(Op op) {
  return row_of(op).pays_per_peer ? Peers::number_and_rate : Peers::none;
}

// What one collective moves, padding included.
//   all_gather      whole = g * largest box,      piece = largest box
//   reduce_scatter  whole = g * largest chunk,    piece = largest chunk
//   all_to_all      whole = g * largest pair piece, piece = that
//   all_reduce      whole = largest member's box, piece = ceil(whole / g)
struct CollectiveBytes {
  Op op = Op::all_gather;
  int64_t whole = 0;
  int64_t piece = 0;
  int64_t copied = 0;  // bytes packed, unpacked and reduced by a rank
};

// Members by level as if no two of the group were joined by links inside the outermost level that
// it needs: what protocols take for a group whose units hold different numbers of members, where
// that takes less than an exchange of its padded pieces.
[[nodiscard]] std::vector<int64_t> members_apart(const GroupShape& shape);
// The time on the slowest of the groups. A group of one rank costs nothing.
[[nodiscard]] int64_t collective_ps(const Topology& topology, const std::vector<GroupShape>& shapes,
                                    const CollectiveBytes& bytes);
[[nodiscard]] int64_t collective_ps(const Topology& topology, const GroupShape& shape,
                                    const CollectiveBytes& bytes);

// Traffic of a uniform group with these members in one unit of each level (GroupShape::members).
[[nodiscard]] Traffic collective_traffic(std::span<const int64_t> members,
                                         const CollectiveBytes& bytes);

}  // namespace meshplan
