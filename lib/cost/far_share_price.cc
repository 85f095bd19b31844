#include "cost/far_share_price.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/exchange_phase.h"
#include "transfer/far_share.h"

namespace meshplan {
namespace {

// What links of one level take, and the slowest of the others: latencies and peers apart.
int64_t level_transfer_ps(const Topology& topology, const Traffic& traffic, size_t level) {
  Traffic of_level;
  of_level.bytes[level] = traffic.bytes[level];
  of_level.peers[level] = traffic.peers[level];
  return phase_time(topology, of_level, Peers::number_and_rate).transfer_ps;
}
int64_t outer_transfer_ps(const Topology& topology, const Traffic& traffic) {
  int64_t slowest = 0;
  for (size_t l = 1; l < topology.levels.size(); ++l)
    slowest = std::max(slowest, level_transfer_ps(topology, traffic, l));
  return slowest;
}

// Looks for the share with which links inside units take as long as those outside.
class FarShareSearch {
 public:
  // `even`: what the even cut moves. Until a share is listed with which others take longer it is
  // supposed that all a rank receives may come over the level outside of units.
  FarShareSearch(const Topology& topology, const ExchangeTraffic& even)
      : topology_(topology), near_(end_at(0, even)) {
    const int64_t received_ps =
        transfer_ps(even.received[0], 1, exchange_mb_per_s(topology.levels[1]));
    far_ = {far_whole, 0, saturating_add(near_.outer_ps, received_ps)};
  }

  // The next one to list; 0: none is left.
  [[nodiscard]] int64_t next() const {
    const int64_t between = far_.far_64ths - near_.far_64ths;
    if (near_.more_ps() <= 0 || between <= 1) return 0;
    // Where the line between the ends says, the middle where that has not helped.
    const int128 part = near_.more_ps();
    const int128 whole = part - far_.more_ps();
    const auto step = static_cast<int64_t>((part * between + whole / 2) / whole);
    return near_.far_64ths + std::clamp<int64_t>(times_ > 2 ? between / 2 : step, 1, between - 1);
  }

  void add(int64_t far_64ths, const ExchangeTraffic& traffic) {
    ++times_;
    const int64_t ps = phase_ps(topology_, traffic, 0);
    if (ps < best_.predicted_ps) best_ = {far_64ths, ps, traffic};
    const End here = end_at(far_64ths, traffic);
    // Where the lines meet that lead from the end inside to here.
    const int128 less_inside = int128{near_.inner_ps} - here.inner_ps;
    const int128 approached = int128{near_.more_ps()} - here.more_ps();
    about_ps_ = 0;
    if (less_inside > 0 && approached > 0)
      about_ps_ = saturating_add(
          ps - std::max(here.inner_ps, here.outer_ps),
          near_.inner_ps - static_cast<int64_t>(less_inside * near_.more_ps() / approached));
    (here.more_ps() > 0 ? near_ : far_) = here;
  }

  [[nodiscard]] const FarSharePrice& best() const { return best_; }
  // About what the best may take yet.
  [[nodiscard]] int64_t about_ps() const { return about_ps_; }

 private:
  struct End {
    int64_t far_64ths = 0;
    int64_t inner_ps = 0;
    int64_t outer_ps = 0;
    [[nodiscard]] int64_t more_ps() const { return inner_ps - outer_ps; }
  };
  [[nodiscard]] End end_at(int64_t far_64ths, const ExchangeTraffic& traffic) const {
    const Traffic& moved = traffic.phase[0];
    return {far_64ths, level_transfer_ps(topology_, moved, 0), outer_transfer_ps(topology_, moved)};
  }

  const Topology& topology_;
  End near_;  // inner links take longer
  End far_;   // others do
  int64_t about_ps_ = 0;
  int times_ = 0;
  FarSharePrice best_;
};

}  // namespace

int64_t least_far_share_ps(const Topology& topology, const ExchangeTraffic& even,
                           const FarPeers& peers) {
  const Traffic& moved = even.phase[0];
  if (level_transfer_ps(topology, moved, 0) <= outer_transfer_ps(topology, moved)) return INT64_MAX;
  const TopologyLevel& inner = topology.levels.front();
  int64_t latency_ns = INT64_MAX;
  int64_t per_peer_ns = INT64_MAX;
  int64_t outer_mb_per_s = 0;
  int64_t outside_ps = 0;  // over links: more peers may share it
  for (size_t l = 1; l < topology.levels.size(); ++l) {
    const TopologyLevel& level = topology.levels[l];
    latency_ns = std::min(latency_ns, level.latency_ns);
    per_peer_ns = std::min(per_peer_ns, level.per_peer_ns);
    outer_mb_per_s = saturating_add(outer_mb_per_s, exchange_mb_per_s(level));
    outside_ps = std::max(outside_ps, transfer_ps(moved.bytes[l], 1, exchange_mb_per_s(level)));
  }
  const auto with_links_of = [&](int64_t ranks) {
    return saturating_add(exchange_mb_per_s(inner), saturating_mul(ranks, outer_mb_per_s));
  };
  const int64_t transfer =
      std::max({outside_ps, transfer_ps(moved.bytes[0], 1, with_links_of(moved.peers[0])),
                transfer_ps(even.received[0], 1, with_links_of(1))});
  const int64_t peers_ns = saturating_add(saturating_mul(peers.near, inner.per_peer_ns),
                                          saturating_mul(peers.far, per_peer_ns));
  return saturating_add(saturating_mul(saturating_add(latency_ns, peers_ns), 1000), transfer);
}

FarSharePrice best_far_share(const Topology& topology, const FarShareLister& list,
                             const ExchangeTraffic* even, int64_t below_ps) {
  constexpr int64_t hardly_percent = 95;
  FarShareSearch search(topology, even != nullptr ? *even : list(0));
  while (const int64_t far_64ths = search.next()) {
    search.add(far_64ths, list(far_64ths));
    if (search.about_ps() / 100 * hardly_percent >= below_ps) break;
  }
  return search.best();
}

}  // namespace meshplan
