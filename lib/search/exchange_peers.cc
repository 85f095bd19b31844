#include "search/exchange_peers.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "cost/listed_bounds.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

PeerPrices prices_of(const Topology& topology) {
  const std::vector<TopologyLevel>& levels = topology.levels;
  PeerPrices prices;
  prices.inner_latency_ns = levels.front().latency_ns;
  prices.inner_peer_ns = levels.front().per_peer_ns;
  if (levels.size() > 1) prices.outer_latency_ns = prices.outer_peer_ns = INT64_MAX;
  for (size_t l = 1; l < levels.size(); ++l) {
    prices.outer_latency_ns = std::min(prices.outer_latency_ns, levels[l].latency_ns);
    prices.outer_peer_ns = std::min(prices.outer_peer_ns, levels[l].per_peer_ns);
  }
  for (size_t l = 0; l < levels.size(); ++l) {
    const bool outermost = l + 1 == levels.size();
    prices.cheapest_first.push_back(
        {outermost ? INT64_MAX : levels[l].ranks - 1, levels[l].per_peer_ns});
  }
  std::stable_sort(prices.cheapest_first.begin(), prices.cheapest_first.end(),
                   [](const auto& a, const auto& b) { return a.each_ns < b.each_ns; });
  return prices;
}

// What so many peers cost at least, who may lie anywhere: all of them, and the most expensive.
struct PeersCost {
  int64_t all_ns = 0;
  int64_t most_ns = 0;
};
PeersCost cost_of_peers(const PeerPrices& prices, int64_t peers) {
  PeersCost cost;
  for (const PeerPrices::Level& level : prices.cheapest_first) {
    if (peers <= 0) break;
    const int64_t here = std::min(peers, level.most);
    cost.all_ns = saturating_add(cost.all_ns, saturating_mul(here, level.each_ns));
    cost.most_ns = level.each_ns;
    peers -= here;
  }
  return cost;
}

// Of one phase without its peers where some lie in other units, of two with theirs: `out`, of one
// rank.
int64_t start_ns(const PeerPrices& prices, const ExchangePeers& peers, int64_t out,
                 ExchangeWay way) {
  if (out == 0) return 0;
  int64_t ns = prices.outer_latency_ns;
  if (way == ExchangeWay::one_phase) return ns;
  ns = saturating_add(ns, saturating_mul(out, prices.outer_peer_ns));
  if (peers.passed_to == 0) return ns;
  const int64_t passed = saturating_mul(peers.passed_to, prices.inner_peer_ns);
  return saturating_add(ns, saturating_add(prices.inner_latency_ns, passed));
}

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

const KnownPeers::OfMask& count_mask(const PlanProblem& p, unsigned sub_axes) {
  KnownPeers& known = p.known_peers;
  if (known.masks.empty()) {
    known.masks.resize(size_t{1} << p.sub_axes);
    known.prices = prices_of(*p.topology);
  }
  KnownPeers::OfMask& of = known.masks[sub_axes];
  of.differing = count_differing(p, sub_axes);
  const auto alike = std::find(known.differing.begin(), known.differing.end(), of.differing);
  of.number = static_cast<uint32_t>(alike - known.differing.begin());
  if (alike == known.differing.end()) known.differing.push_back(of.differing);
  return of;
}

const KnownPeers::OfMask& differing(const PlanProblem& p, unsigned sub_axes) {
  const std::vector<KnownPeers::OfMask>& masks = p.known_peers.masks;
  if (!masks.empty() && masks[sub_axes].differing.ranks > 0) return masks[sub_axes];
  return count_mask(p, sub_axes);
}

// What decides the peers of an exchange.
KnownPeers::Met met_between(const PlanProblem& p, const SearchState& from, const SearchState& to,
                            const RankSides::Lists& before, const RankSides::Lists& after) {
  const unsigned apart = (from.pending | from.made) & (to.pending | to.made);
  const unsigned all = p.all & ~apart;
  const unsigned reduced = from.pending & ~to.pending;
  KnownPeers::Met met;
  met.copies = differing(p, all & ~unsigned{after.sub_axes}).number;
  met.holders = differing(p, all & ~reduced & ~unsigned{before.sub_axes}).number;
  const KnownPeers::Differing& on_reduced = differing(p, reduced).differing;
  met.shards = on_reduced.ranks;
  met.shards_inside = on_reduced.coordinates;
  met.longest = p.idle_longest;
  for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
    const ListMeetings::Most& along = p.meetings.most(p.meetings.number(p, before, after, d));
    met.longest = std::max(met.longest, along.whole);
    met.shards = saturating_mul(met.shards, along.shards);
    met.targets = saturating_mul(met.targets, along.targets);
    met.shards_inside *= along.shards_inside;
    met.targets_inside *= along.targets_inside;
  }
  const int64_t unit = p.topology->levels.front().ranks;
  met.shards_inside = std::min(met.shards_inside, unit);
  met.targets_inside = std::min(met.targets_inside, unit);
  met.longest = std::min(met.longest, unit);
  return met;
}

class PeerCounter {
 public:
  PeerCounter(const PlanProblem& p, const KnownPeers::Met& met)
      : p_(p),
        met_(met),
        copies_(p.known_peers.differing[met.copies]),
        holders_(p.known_peers.differing[met.holders]) {}

  [[nodiscard]] ExchangePeers count() const {
    const int64_t from_outside = std::max<int64_t>(0, met_.shards - met_.shards_inside);
    const int64_t wanting = saturating_mul(met_.targets, copies_.ranks);
    const int64_t wanting_inside =
        std::min(saturating_mul(met_.targets_inside, copies_.inside), p_.topology->levels[0].ranks);
    const int64_t wanting_outside = std::max<int64_t>(0, wanting - holders_.units * wanting_inside);
    const int64_t to_outside = each_holder(wanting_outside);
    ExchangePeers peers;
    peers.holding_units = holders_.units;
    peers.wanting_inside = wanting_inside;
    peers.targets_inside = met_.targets_inside;
    peers.wanting_units = share_of(copies_.ranks, copies_.inside);
    peers.all = std::max(met_.shards - 1, each_holder(wanting - holders_.ranks));
    peers.outside = std::max(from_outside, to_outside);
    // Members of a unit that want one target share what it misses, each shard in as many parts as
    // make that even (parts_to_share), where it is long enough.
    const int64_t units = saturating_mul(met_.targets, peers.wanting_units);
    int64_t fetches = units - holders_.units * met_.targets_inside;
    if (met_.longest >= copies_.inside)
      fetches = std::max(fetches, ceil_div(floor_div(saturating_mul(16, wanting_outside), 17),
                                           std::max<int64_t>(1, met_.shards)));
    peers.fetched_from = std::max(share_of(from_outside, copies_.inside), each_holder(fetches));
    // One member may fetch a few shards whole for all its unit.
    const int64_t unit = p_.topology->levels.front().ranks;
    peers.by_all_from =
        std::max(share_of(from_outside, unit), each_holder(share_of(wanting_outside, unit)));
    if (p_.exact_levels && from_outside > 0) peers.passed_to = copies_.inside - 1;
    if (p_.topology->levels.size() == 1)
      peers.outside = peers.fetched_from = peers.by_all_from = peers.passed_to = 0;
    peers.all = std::max(peers.all, peers.outside);
    const PeerPrices& prices = p_.known_peers.prices;
    peers.start_ns = {start_ns(prices, peers, peers.outside, ExchangeWay::one_phase),
                      start_ns(prices, peers, peers.fetched_from, ExchangeWay::two_phases),
                      start_ns(prices, peers, peers.by_all_from, ExchangeWay::by_all)};
    const int64_t anywhere = peers.all - peers.outside;
    const PeersCost cost = cost_of_peers(prices, anywhere);
    peers.paid = {anywhere, cost.most_ns};
    peers.peers_ns =
        saturating_add(saturating_mul(peers.outside, prices.outer_peer_ns), cost.all_ns);
    return peers;
  }

 private:
  // Of so many requests for parts of one shard, by one of its holders.
  [[nodiscard]] int64_t each_holder(int64_t requests) const {
    return requests <= 0 ? 0 : share_of(requests, holders_.ranks);
  }
  // Of some things the most that one of so many has at least.
  [[nodiscard]] static int64_t share_of(int64_t things, int64_t among) {
    return things <= 1 || among == 1 ? things : ceil_div(things, among);
  }
  const PlanProblem& p_;
  const KnownPeers::Met& met_;
  const KnownPeers::Differing& copies_;   // of a target
  const KnownPeers::Differing& holders_;  // of a shard
};

KnownPeers::OfMet& place_of(KnownPeers& known, const KnownPeers::Met& met) {
  constexpr size_t fewest = 64;
  constexpr size_t most = 2'048;  // more of them leave the caches
  if (known.taken >= known.of_met.size() && known.of_met.size() < most) {
    known.of_met.assign(std::max(fewest, known.of_met.size() * 2), {});
    known.taken = 0;
  }
  uint64_t h = 0;
  for (const int64_t value : {met.shards, met.targets, met.shards_inside, met.targets_inside,
                              met.longest, int64_t{met.copies} << 32 | met.holders})
    h = (h ^ h >> 29 ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15U;
  return known.of_met[h >> 40 & (known.of_met.size() - 1)];
}

LeastByPeers least_of(const ExchangePeers& peers) {
  LeastByPeers least = peers.start_ns;
  int64_t& one_phase = least[static_cast<size_t>(ExchangeWay::one_phase)];
  one_phase = saturating_add(one_phase, peers.peers_ns);
  return least;
}

}  // namespace

int64_t coordinates_inside(const PlanProblem& p, unsigned sub_axes) {
  return differing(p, sub_axes).differing.coordinates;
}

namespace {

bool was_last(const KnownPeers& known, const SearchState& from, const SearchState& to) {
  return known.from == from && known.to == to;
}

// What two states meet in: those asked for last are remembered.
const KnownPeers::Met& met_by(const PlanProblem& p, const SearchState& from, const SearchState& to,
                              const RankSides::Lists& before, const RankSides::Lists& after) {
  KnownPeers& known = p.known_peers;
  if (was_last(known, from, to)) return known.met;
  p.work += work::peers;
  known.met = met_between(p, from, to, before, after);
  known.peers.reset();
  known.from = from;
  known.to = to;
  return known.met;
}
const KnownPeers::Met& met_by(const PlanProblem& p, const SearchState& from,
                              const SearchState& to) {
  if (was_last(p.known_peers, from, to)) return p.known_peers.met;
  const RankSides::Lists& before = p.sides.lists(p, from);
  return met_by(p, from, to, before, p.sides.lists(p, to));
}

}  // namespace

int64_t shards_met(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return met_by(p, from, to).shards;
}

const ExchangePeers& exchange_peers(const PlanProblem& p, const SearchState& from,
                                    const SearchState& to) {
  const KnownPeers::Met& met = met_by(p, from, to);
  std::optional<ExchangePeers>& peers = p.known_peers.peers;
  if (!peers) peers = PeerCounter(p, met).count();
  return *peers;
}

const LeastByPeers& least_by_peers(const PlanProblem& p, const SearchState& from,
                                   const SearchState& to, const RankSides::Lists& before,
                                   const RankSides::Lists& after) {
  const KnownPeers::Met& met = met_by(p, from, to, before, after);
  KnownPeers& known = p.known_peers;
  KnownPeers::OfMet& place = place_of(known, met);
  if (!(place.met == met)) {
    ++known.taken;
    place = {met, least_of(PeerCounter(p, met).count())};
  }
  return place.least_ns;
}

}  // namespace meshplan
