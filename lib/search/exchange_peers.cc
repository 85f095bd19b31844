#include "search/exchange_peers.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/int_math.h"
#include "cost/listed_bounds.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

// What so many peers cost at least, of whom so many lie in other units of the innermost level: as
// many others as a level has on the level where they cost least, then on the next.
int64_t peers_ns(const Topology& topology, int64_t all, int64_t outside) {
  const std::vector<TopologyLevel>& levels = topology.levels;
  int64_t ns = 0;
  if (outside > 0) {
    int64_t least = INT64_MAX;
    for (size_t l = 1; l < levels.size(); ++l) least = std::min(least, levels[l].per_peer_ns);
    ns = saturating_mul(outside, least);
  }
  int64_t left = all - outside;
  unsigned taken = 0;
  while (left > 0) {
    size_t least = levels.size();
    for (size_t l = 0; l < levels.size(); ++l) {
      if ((taken >> l & 1) != 0) continue;
      if (least == levels.size() || levels[l].per_peer_ns < levels[least].per_peer_ns) least = l;
    }
    if (least == levels.size()) break;
    taken |= 1U << least;
    const bool outermost = least + 1 == levels.size();
    const int64_t here = outermost ? left : std::min(left, levels[least].ranks - 1);
    ns = saturating_add(ns, saturating_mul(here, levels[least].per_peer_ns));
    left -= here;
  }
  return ns;
}

// Of one phase without its peers where some lie in other units, of two with theirs: `out`, of one
// rank.
int64_t start_ns(const Topology& topology, const ExchangePeers& peers, int64_t out,
                 ExchangeWay way) {
  const std::vector<TopologyLevel>& levels = topology.levels;
  if (out == 0) return 0;
  int64_t ns = INT64_MAX;
  for (size_t l = 1; l < levels.size(); ++l) ns = std::min(ns, levels[l].latency_ns);
  if (way == ExchangeWay::one_phase) return ns;
  ns = saturating_add(ns, peers_ns(topology, out, out));
  if (peers.passed_to == 0) return ns;
  const int64_t passed = saturating_mul(peers.passed_to, levels[0].per_peer_ns);
  return saturating_add(ns, saturating_add(levels[0].latency_ns, passed));
}

const KnownPeers::Differing& differing(const PlanProblem& p, unsigned sub_axes);

// What decides the peers of an exchange.
KnownPeers::Met met_between(const PlanProblem& p, const SearchState& from, const SearchState& to,
                            const RankSides::Lists& before, const RankSides::Lists& after) {
  const unsigned apart = (from.pending | from.made) & (to.pending | to.made);
  const unsigned all = p.all & ~apart;
  const unsigned reduced = from.pending & ~to.pending;
  KnownPeers::Met met;
  met.copies = static_cast<uint16_t>(all & ~unsigned{after.sub_axes});
  met.holders = static_cast<uint16_t>(all & ~reduced & ~unsigned{before.sub_axes});
  met.reduced = static_cast<uint16_t>(reduced);
  for (int d = 0; d < p.dims && !is_scalar(p); ++d)
    met.along[as_index(d)] = p.meetings.number(p, before, after, d);
  return met;
}

class PeerCounter {
 public:
  PeerCounter(const PlanProblem& p, const KnownPeers::Met& met) : p_(p), longest_(p.idle_longest) {
    const KnownPeers::Differing on_copies = differing(p, met.copies);
    const KnownPeers::Differing on_holders = differing(p, met.holders);
    const KnownPeers::Differing on_reduced = differing(p, met.reduced);
    copies_ = on_copies.ranks;
    holders_ = on_holders.ranks;
    copies_inside_ = on_copies.inside;
    holding_units_ = on_holders.units;
    shards_ = on_reduced.ranks;
    shards_inside_ = on_reduced.coordinates;
    for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
      const ListMeetings::Most& along = p.meetings.most(met.along[as_index(d)]);
      longest_ = std::max(longest_, along.whole);
      shards_ = saturating_mul(shards_, along.shards);
      targets_ = saturating_mul(targets_, along.targets);
      shards_inside_ *= along.shards_inside;
      targets_inside_ *= along.targets_inside;
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
    const Topology& topology = *p_.topology;
    peers.start_ns = {start_ns(topology, peers, peers.outside, ExchangeWay::one_phase),
                      start_ns(topology, peers, peers.fetched_from, ExchangeWay::two_phases),
                      start_ns(topology, peers, peers.by_all_from, ExchangeWay::by_all)};
    peers.peers_ns = peers_ns(topology, peers.all, peers.outside);
    return peers;
  }

 private:
  // Of so many requests for parts of one shard, by one of its holders.
  [[nodiscard]] int64_t each_holder(int64_t requests) const {
    return requests <= 0 ? 0 : share_of(requests, holders_);
  }
  // Of some things the most that one of so many has at least.
  [[nodiscard]] static int64_t share_of(int64_t things, int64_t among) {
    return things <= 1 || among == 1 ? things : ceil_div(things, among);
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

KnownPeers::Differing count_differing(const PlanProblem& p, unsigned sub_axes) {
  const auto mask = static_cast<uint16_t>(sub_axes);
  const int64_t ranks = group_size(p, mask);
  if (p.exact_levels) {
    DigitMask digits = 0;
    for (; sub_axes != 0; sub_axes &= sub_axes - 1)
      digits |= p.digit_set[static_cast<size_t>(__builtin_ctz(sub_axes))];
    const int64_t inside = p.world.product(digits & p.world.at_level(0));
    return {ranks, inside, ranks / inside, inside};
  }
  int64_t coordinates = 1;
  for (; sub_axes != 0; sub_axes &= sub_axes - 1)
    coordinates = saturating_mul(coordinates, p.inside[as_index(__builtin_ctz(sub_axes))]);
  const int64_t most = std::min(p.topology->levels.front().ranks, ranks);
  coordinates = std::min(coordinates, most);
  if (p.ranks > bounded_ranks) return {ranks, most, ranks, coordinates};
  (void)group_shapes(p, mask);  // counts their work
  const LevelMap::Spread& spread = p.levels->spread(mesh_sub_axes(p, mask));
  return {ranks, spread.inside, spread.units, coordinates};
}

const KnownPeers::Differing& differing(const PlanProblem& p, unsigned sub_axes) {
  p.known_peers.differing.resize(size_t{1} << p.sub_axes);
  KnownPeers::Differing& known = p.known_peers.differing[sub_axes];
  if (known.ranks == 0) known = count_differing(p, sub_axes);
  return known;
}

using MetWords = std::array<uint64_t, sizeof(KnownPeers::Met) / sizeof(uint64_t)>;
MetWords words_of(const KnownPeers::Met& met) {
  MetWords words;
  static_assert(sizeof words == sizeof met);
  std::memcpy(words.data(), &met, sizeof words);
  return words;
}

size_t hash_of(const KnownPeers::Met& met) {
  uint64_t h = 0;
  for (const uint64_t word : words_of(met)) h = (h ^ h >> 29 ^ word) * 0x9e3779b97f4a7c15U;
  return h ^ h >> 32;
}

void make_room(KnownPeers& known) {
  known.slots.assign(std::max<size_t>(64, known.slots.size() * 2), 0);
  for (size_t i = 0; i < known.known.size(); ++i) {
    size_t slot = hash_of(known.known[i].met) & (known.slots.size() - 1);
    while (known.slots[slot] != 0) slot = (slot + 1) & (known.slots.size() - 1);
    known.slots[slot] = static_cast<uint32_t>(i + 1);
  }
}

// Where the peers of all that meet so are counted.
size_t place_of(const PlanProblem& p, const KnownPeers::Met& met) {
  KnownPeers& known = p.known_peers;
  if (known.slots.size() < 2 * (known.known.size() + 1)) make_room(known);
  size_t slot = hash_of(met) & (known.slots.size() - 1);
  while (known.slots[slot] != 0) {
    if (words_of(known.known[known.slots[slot] - 1].met) == words_of(met))
      return known.slots[slot] - 1;
    slot = (slot + 1) & (known.slots.size() - 1);
  }
  known.known.push_back({met, PeerCounter(p, met).count()});
  known.slots[slot] = static_cast<uint32_t>(known.known.size());
  return known.known.size() - 1;
}

}  // namespace

int64_t coordinates_inside(const PlanProblem& p, unsigned sub_axes) {
  return differing(p, sub_axes).coordinates;
}

const ExchangePeers& exchange_peers(const PlanProblem& p, const SearchState& from,
                                    const SearchState& to) {
  KnownPeers& known = p.known_peers;
  if (known.from == from && known.to == to) return known.known[known.last].peers;
  const RankSides::Lists& before = p.sides.lists(p, from);
  return exchange_peers(p, from, to, before, p.sides.lists(p, to));
}

const ExchangePeers& exchange_peers(const PlanProblem& p, const SearchState& from,
                                    const SearchState& to, const RankSides::Lists& before,
                                    const RankSides::Lists& after) {
  KnownPeers& known = p.known_peers;
  if (known.from == from && known.to == to) return known.known[known.last].peers;
  p.work += work::peers;
  known.last = place_of(p, met_between(p, from, to, before, after));
  known.from = from;
  known.to = to;
  return known.known[known.last].peers;
}

}  // namespace meshplan
