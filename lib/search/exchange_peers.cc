#include "search/exchange_peers.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

unsigned on_list(const SearchState& s, int d) {
  unsigned sub_axes = 0;
  for (int i = s.begin_of(d); i < s.end_of(d); ++i) sub_axes |= 1U << s.sub_axis[as_index(i)];
  return sub_axes;
}

class PeerCounter {
 public:
  PeerCounter(const PlanProblem& p, const SearchState& from, const SearchState& to) : p_(p) {
    const unsigned apart = (from.pending | from.made) & (to.pending | to.made);
    const unsigned all = p.all & ~apart;
    const unsigned reduced = from.pending & ~to.pending;
    const unsigned copies = all & ~unsigned{sharding(to, p.dims)};
    const unsigned holders = all & ~reduced & ~unsigned{sharding(from, p.dims)};
    const KnownPeers::Differing& on_copies = differing(copies);
    const KnownPeers::Differing& on_holders = differing(holders);
    const KnownPeers::Differing& on_reduced = differing(reduced);
    copies_ = on_copies.ranks;
    holders_ = on_holders.ranks;
    copies_inside_ = on_copies.inside;
    holding_units_ = p.exact_levels ? holders_ / on_holders.inside : holders_;
    shards_ = on_reduced.ranks;
    shards_inside_ = on_reduced.inside;
    for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
      const ListMeetings::Most& most = p.meetings.of(p, from, to, d);
      shards_ = saturating_mul(shards_, most.shards);
      targets_ = saturating_mul(targets_, most.targets);
      shards_inside_ *= std::min(most.shards, differing(on_list(from, d)).inside);
      targets_inside_ *= std::min(most.targets, differing(on_list(to, d)).inside);
    }
    const int64_t unit = p.topology->levels.front().ranks;
    shards_inside_ = std::min(shards_inside_, unit);
    targets_inside_ = std::min(targets_inside_, unit);
  }

  [[nodiscard]] ExchangePeers count() const {
    const int64_t from_outside = std::max<int64_t>(0, shards_ - shards_inside_);
    const int64_t wanting = saturating_mul(targets_, copies_);
    const int64_t wanting_inside =
        std::min(saturating_mul(targets_inside_, copies_inside_), p_.topology->levels[0].ranks);
    const int64_t to_outside = each_holder(wanting - holding_units_ * wanting_inside);
    ExchangePeers peers;
    peers.all = std::max(shards_ - 1, each_holder(wanting - holders_));
    peers.outside = std::max(from_outside, to_outside);
    // Members of a unit that want one target share what it misses.
    const int64_t units = saturating_mul(targets_, ceil_div(copies_, copies_inside_));
    peers.fetched_from = std::max(ceil_div(from_outside, copies_inside_),
                                  each_holder(units - holding_units_ * targets_inside_));
    if (p_.exact_levels && from_outside > 0) peers.passed_to = copies_inside_ - 1;
    if (p_.topology->levels.size() == 1) peers.outside = peers.fetched_from = peers.passed_to = 0;
    peers.all = std::max(peers.all, peers.outside);
    return peers;
  }

 private:
  // Of so many requests for parts of one shard, by one of its holders.
  [[nodiscard]] int64_t each_holder(int64_t requests) const {
    return ceil_div(std::max<int64_t>(0, requests), holders_);
  }
  [[nodiscard]] const KnownPeers::Differing& differing(unsigned sub_axes) const {
    KnownPeers::Differing& known = p_.known_peers.differing[sub_axes];
    if (known.ranks == 0)
      known = {group_size(p_, static_cast<uint16_t>(sub_axes)), inside(sub_axes)};
    return known;
  }
  // Ranks of a unit that differ on these sub-axes, or more.
  [[nodiscard]] int64_t inside(unsigned sub_axes) const {
    if (!p_.exact_levels) {
      int64_t ranks = 1;
      for (; sub_axes != 0; sub_axes &= sub_axes - 1)
        ranks = saturating_mul(ranks, p_.inside[as_index(__builtin_ctz(sub_axes))]);
      return std::min(p_.topology->levels.front().ranks, ranks);
    }
    DigitMask digits = 0;
    for (; sub_axes != 0; sub_axes &= sub_axes - 1)
      digits |= p_.digit_set[static_cast<size_t>(__builtin_ctz(sub_axes))];
    return p_.world.product(digits & p_.world.at_level(0));
  }

  const PlanProblem& p_;
  // The most shards that one rank's target meets, contributions by themselves, and the most targets
  // that one shard meets; of these, in one unit of the innermost level at most.
  int64_t shards_ = 1;
  int64_t targets_ = 1;
  int64_t shards_inside_ = 1;
  int64_t targets_inside_ = 1;
  int64_t copies_ = 1;         // of a target
  int64_t copies_inside_ = 1;  // in one unit, at most
  int64_t holders_ = 1;        // of a shard
  int64_t holding_units_ = 1;  // at most
};

}  // namespace

ExchangePeers exchange_peers(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  KnownPeers& known = p.known_peers;
  if (known.from == from && known.to == to) return known.peers;
  p.work += work::peers;
  known.differing.resize(size_t{1} << p.sub_axes);
  known.peers = PeerCounter(p, from, to).count();
  known.from = from;
  known.to = to;
  return known.peers;
}

}  // namespace meshplan
