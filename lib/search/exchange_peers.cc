#include "search/exchange_peers.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/listed_bounds.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

class PeerCounter {
 public:
  PeerCounter(const PlanProblem& p, const SearchState& from, const SearchState& to)
      : p_(p), longest_(p.idle_longest) {
    const RankSides::Lists& before = p.sides.lists(p, from);
    const RankSides::Lists& after = p.sides.lists(p, to);
    const unsigned apart = (from.pending | from.made) & (to.pending | to.made);
    const unsigned all = p.all & ~apart;
    const unsigned reduced = from.pending & ~to.pending;
    const unsigned copies = all & ~unsigned{after.sub_axes};
    const unsigned holders = all & ~reduced & ~unsigned{before.sub_axes};
    const KnownPeers::Differing& on_copies = differing(copies);
    const KnownPeers::Differing& on_holders = differing(holders);
    const KnownPeers::Differing& on_reduced = differing(reduced);
    copies_ = on_copies.ranks;
    holders_ = on_holders.ranks;
    copies_inside_ = on_copies.inside;
    holding_units_ = on_holders.units;
    shards_ = on_reduced.ranks;
    shards_inside_ = on_reduced.coordinates;
    for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
      const ListMeetings::Most& most = p.meetings.of(p, before, after, d);
      if (from.length(d) + to.length(d) == 0)
        longest_ = std::max(longest_, p.tensor.shape[as_index(p.tensor_dim[as_index(d)])]);
      if (most.shards > 1) {
        shards_ = saturating_mul(shards_, most.shards);
        shards_inside_ *= std::min(most.shards, coordinates_on(before, d));
      }
      if (most.targets > 1) {
        targets_ = saturating_mul(targets_, most.targets);
        targets_inside_ *= std::min(most.targets, coordinates_on(after, d));
      }
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
    const int64_t wanting_outside = std::max<int64_t>(0, wanting - holding_units_ * wanting_inside);
    const int64_t to_outside = each_holder(wanting_outside);
    ExchangePeers peers;
    peers.shards = shards_;
    peers.holding_units = holding_units_;
    peers.wanting_inside = wanting_inside;
    peers.targets_inside = targets_inside_;
    peers.wanting_units = share_of(copies_, copies_inside_);
    peers.all = std::max(shards_ - 1, each_holder(wanting - holders_));
    peers.outside = std::max(from_outside, to_outside);
    // Members of a unit that want one target share what it misses, each shard in as many parts as
    // make that even (parts_to_share), where it is long enough.
    const int64_t units = saturating_mul(targets_, peers.wanting_units);
    int64_t fetches = units - holding_units_ * targets_inside_;
    if (longest_ >= copies_inside_)
      fetches = std::max(fetches, ceil_div(floor_div(saturating_mul(16, wanting_outside), 17),
                                           std::max<int64_t>(1, shards_)));
    peers.fetched_from = std::max(share_of(from_outside, copies_inside_), each_holder(fetches));
    // One member may fetch a few shards whole for all its unit.
    const int64_t unit = p_.topology->levels.front().ranks;
    peers.by_all_from =
        std::max(share_of(from_outside, unit), each_holder(share_of(wanting_outside, unit)));
    if (p_.exact_levels && from_outside > 0) peers.passed_to = copies_inside_ - 1;
    if (p_.topology->levels.size() == 1)
      peers.outside = peers.fetched_from = peers.by_all_from = peers.passed_to = 0;
    peers.all = std::max(peers.all, peers.outside);
    return peers;
  }

 private:
  // The most coordinates on list d that ranks of one unit have.
  [[nodiscard]] int64_t coordinates_on(const RankSides::Lists& lists, int d) const {
    return differing(lists.along[as_index(d)]->sub_axes).coordinates;
  }
  // Of so many requests for parts of one shard, by one of its holders.
  [[nodiscard]] int64_t each_holder(int64_t requests) const {
    return requests <= 0 ? 0 : share_of(requests, holders_);
  }
  // Of some things the most that one of so many has at least.
  [[nodiscard]] static int64_t share_of(int64_t things, int64_t among) {
    return things <= 1 || among == 1 ? things : ceil_div(things, among);
  }
  [[nodiscard]] const KnownPeers::Differing& differing(unsigned sub_axes) const {
    KnownPeers::Differing& known = p_.known_peers.differing[sub_axes];
    if (known.ranks == 0) known = count_differing(sub_axes);
    return known;
  }
  [[nodiscard]] KnownPeers::Differing count_differing(unsigned sub_axes) const {
    const auto mask = static_cast<uint16_t>(sub_axes);
    const int64_t ranks = group_size(p_, mask);
    if (p_.exact_levels) {
      DigitMask digits = 0;
      for (; sub_axes != 0; sub_axes &= sub_axes - 1)
        digits |= p_.digit_set[static_cast<size_t>(__builtin_ctz(sub_axes))];
      const int64_t inside = p_.world.product(digits & p_.world.at_level(0));
      return {ranks, inside, ranks / inside, inside};
    }
    int64_t coordinates = 1;
    for (; sub_axes != 0; sub_axes &= sub_axes - 1)
      coordinates = saturating_mul(coordinates, p_.inside[as_index(__builtin_ctz(sub_axes))]);
    const int64_t most = std::min(p_.topology->levels.front().ranks, ranks);
    coordinates = std::min(coordinates, most);
    if (p_.ranks > bounded_ranks) return {ranks, most, ranks, coordinates};
    (void)group_shapes(p_, mask);  // counts their work
    const LevelMap::Spread& spread = p_.levels->spread(mesh_sub_axes(p_, mask));
    return {ranks, spread.inside, spread.units, coordinates};
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
  int64_t longest_ = 1;        // dim that neither cuts
};

}  // namespace

const ExchangePeers& exchange_peers(const PlanProblem& p, const SearchState& from,
                                    const SearchState& to) {
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
