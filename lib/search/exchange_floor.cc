#include "search/exchange_floor.h"

#include <algorithm>
#include <optional>

#include "base/int_math.h"
#include "cost/finer_tiers.h"
#include "search/all_fetch.h"
#include "search/exchange_peers.h"
#include "search/list_pairs.h"
#include "search/pair_memo.h"
#include "search/search_state.h"
#include "search/unit_needs.h"
#include "search/unit_peers.h"
#include "search/work.h"

namespace meshplan {
namespace {

// Of other units, by some rank.
int64_t peers_in_other_units(const ExchangePeers& peers, ExchangeWay way) {
  if (way == ExchangeWay::one_phase) return peers.outside;
  return way == ExchangeWay::by_all ? peers.by_all_from : peers.fetched_from;
}

// What one exchange takes at least: what the listed ranks receive, what the holders of the largest
// shard send, and how many peers some rank has. Of any way, as they have most of it in common.
class ExchangeFloor {
 public:
  ExchangeFloor(const PlanProblem& p, const SearchState& from, const SearchState& to)
      : p_(p), from_(from), to_(to) {
    contributions_ = group_size(p, static_cast<uint16_t>(from.pending & ~to.pending));
    element_ = contributions_ > 1 ? p.reduce_element : p.element;
    const int64_t apart =
        group_size(p, static_cast<uint16_t>((from.pending | from.made) & (to.pending | to.made)));
    holders_ = p.ranks / apart / contributions_ / group_size(p, sharding(from, p.dims));
    wanting_ = p.ranks / apart / group_size(p, sharding(to, p.dims));
    missing_ = most_missing(p, pairs_of_lists(p, from, to), contributions_);
    shard_ = shared_ = p.idle_elements;
    if (is_scalar(p)) return;
    const RankSides::Lists& before = p.sides.lists(p, from);
    const RankSides::Lists& after = p.sides.lists(p, to);
    for (size_t d = 0; d < as_index(p.dims); ++d) {
      shard_ *= before.along[d]->widest;
      shared_ *= std::min(before.along[d]->widest, after.along[d]->widest);
    }
  }

  // Of any way, by what is missing alone: told in a fraction of the time.
  [[nodiscard]] int64_t least_ps() const {
    if (missing_ == 0) return 0;
    const Links links = links_from(0);
    return saturating_add(saturating_mul(links.latency_ns, 1000),
                          transfer_ps(saturating_mul(missing_, element_), 1, links.mb_per_s));
  }

  // `of_more_wanted`: that one to a state which wants more takes at least, too.
  [[nodiscard]] int64_t ps(ExchangeWay way, bool of_more_wanted = false) {
    if (!peers_) peers_ = exchange_peers(p_, from_, to_);
    // Every element of a shard is wanted by as many ranks, of which holders have at most their
    // box's share; in one phase the holders send the rest. In two, others pass on what they
    // fetched.
    int64_t received = missing_;
    if (shard_ != 0 && way == ExchangeWay::one_phase)
      received = std::max(received, saturated(ceil_share(holders_)));
    if (received == 0) return 0;
    int64_t most = 0;
    // What goes beyond units of the level before takes its levels and those outside of it.
    const auto& levels = p_.topology->levels;
    for (size_t k = 0; k < levels.size(); ++k) {
      const int64_t elements = k == 0 ? received : sent_beyond(k - 1, way);
      if (elements <= 0) break;
      const Links links = links_from(k);
      int64_t peers = peers_beyond(k, way);
      int64_t start_ns = peers_->start_ns[static_cast<size_t>(way)];
      if (way == ExchangeWay::by_all && k == 1 && !of_more_wanted) {
        // Who fetches takes no more than an even share, which is none larger than a box.
        const int64_t asking = ceil_div(elements, longest_stretch(p_, to_, box_elements(p_, to_)));
        if (asking > peers) {
          start_ns = saturating_add(start_ns, saturating_mul(asking - peers, outer_peer_ns()));
          peers = asking;
          counts_asking_ = true;
        }
      }
      int64_t latency = std::max(links.latency_ns, start_ns);
      if (way == ExchangeWay::one_phase) latency = saturating_add(latency, peers_->peers_ns);
      const int64_t bytes = saturating_mul(elements, element_);
      // Peers that one phase pays for may all lie outside.
      const bool may_lie_outside = way == ExchangeWay::one_phase && k > 0;
      const PaidPeers paid = may_lie_outside ? peers_->paid : PaidPeers{};
      const int64_t transfer = k + 1 == levels.size()
                                   ? least_transfer_ps(levels.back(), bytes, 1, peers, paid)
                                   : transfer_ps(bytes, 1, links.mb_per_s);
      most = std::max(most, saturating_add(saturating_mul(latency, 1000), transfer));
    }
    return most;
  }
  // Of what all fetch, of which so much was told.
  [[nodiscard]] int64_t of_more_wanted_ps(int64_t by_all_ps) {
    return counts_asking_ ? ps(ExchangeWay::by_all, true) : by_all_ps;
  }

 private:
  // Of a level and those outside of it together.
  struct Links {
    int64_t mb_per_s = 0;
    int64_t latency_ns = INT64_MAX;  // the least
  };
  [[nodiscard]] Links links_from(size_t level) const {
    Links links;
    for (size_t l = level; l < p_.topology->levels.size(); ++l) {
      links.mb_per_s += exchange_mb_per_s(p_.topology->levels[l]);
      links.latency_ns = std::min(links.latency_ns, p_.topology->levels[l].latency_ns);
    }
    return links;
  }
  [[nodiscard]] int64_t outer_peer_ns() const { return p_.known_peers.prices.outer_peer_ns; }
  // Of what goes beyond units of the level inside of level k.
  [[nodiscard]] int64_t peers_beyond(size_t k, ExchangeWay way) const {
    return k == 0 && way == ExchangeWay::one_phase ? peers_->all
                                                   : peers_in_other_units(*peers_, way);
  }
  // What a holder sends at least to ranks outside of its unit of a level. Of the innermost it is
  // known how many units hold a shard, and what lies in them.
  [[nodiscard]] int64_t sent_beyond(size_t level, ExchangeWay way) const {
    const int64_t unit_ranks = p_.topology->levels[level].ranks;
    if (way == ExchangeWay::one_phase) {
      int64_t near = saturating_mul(holders_, unit_ranks);
      if (level == 0)
        near = std::min(near, saturating_mul(peers_->holding_units, peers_->wanting_inside));
      return saturated(ceil_share(near));
    }
    // By each unit that wants part of a shard and holds none of it, once for all its members that
    // want the same.
    int128 fetched = 0;
    if (level == 0) {
      const int128 inside = std::min(int128{shard_}, int128{shared_} * peers_->targets_inside);
      fetched = int128{shard_} * peers_->wanting_units - inside * peers_->holding_units;
    } else {
      fetched = int128{shard_} * (ceil_div(wanting_, unit_ranks) - holders_);
    }
    return fetched <= 0 ? 0 : saturated((fetched + holders_ - 1) / holders_);
  }
  // So many ranks that want part of a shard lie so near its holders, themselves included, that they
  // have nothing of it from farther away.
  [[nodiscard]] int128 ceil_share(int64_t near) const {
    const int128 all = int128{shard_} * wanting_ - int128{shared_} * near;
    return all <= 0 ? 0 : (all + holders_ - 1) / holders_;
  }

  const PlanProblem& p_;
  const SearchState& from_;
  const SearchState& to_;
  std::optional<ExchangePeers> peers_;  // none: not needed yet
  int64_t contributions_ = 1;
  int64_t element_ = 1;
  int64_t holders_ = 1;         // of a shard
  int64_t wanting_ = 1;         // ranks that want an element
  int64_t shard_ = 0;           // elements of the largest
  int64_t shared_ = 0;          // that a rank wants of it at most
  int64_t missing_ = 0;         // elements that some rank receives
  bool counts_asking_ = false;  // who fetches for all, which holds between these states alone
};

// Finer tiers, contributions that are made, and more elements than are counted.
bool is_not_floored(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  const bool makes = from.made != to.made || (to.pending & ~from.pending) != 0;
  return p.total_elements == 0 || p.total_elements == INT64_MAX || has_tables(*p.topology) || makes;
}

}  // namespace

namespace {

// Whether all may fetch is asked only where it decides.
bool by_all_decides(int64_t others_ps, int64_t by_all_ps, int64_t enough_ps) {
  return by_all_ps < enough_ps && enough_ps <= others_ps;
}

// The least with what all may fetch.
AnyWayFloor with_by_all(const PlanProblem& p, const SearchState& from, const SearchState& to,
                        int64_t others_ps, int64_t by_all_ps, int64_t enough_ps) {
  if (by_all_decides(others_ps, by_all_ps, enough_ps) && !may_go(p, from, to, ExchangeWay::by_all))
    return {others_ps, false, false};
  return {std::min(others_ps, by_all_ps)};
}

AnyWayFloor by_peers(const PlanProblem& p, const SearchState& from, const SearchState& to,
                     const RankSides::Lists& before, const RankSides::Lists& after,
                     int64_t enough_ps) {
  const LeastByPeers& least = least_by_peers(p, from, to, before, after);
  const auto in = [&](ExchangeWay way) { return least[static_cast<size_t>(way)]; };
  int64_t ps = saturating_mul(in(ExchangeWay::one_phase), 1000);
  if (from.pending != to.pending) return {ps};
  ps = std::min(ps, saturating_mul(in(ExchangeWay::two_phases), 1000));
  const int64_t by_all = saturating_mul(in(ExchangeWay::by_all), 1000);
  if (!p.all_may_fetch) return {ps, true, by_all >= ps};
  if (by_all_decides(ps, by_all, enough_ps)) {
    p.sides.recall(before);
    p.sides.recall(after);
  }
  return with_by_all(p, from, to, ps, by_all, enough_ps);
}

}  // namespace

AnyWayFloor few_peers_floor(const PlanProblem& p, const SearchState& from, const SearchState& to,
                            int64_t enough_ps) {
  if (is_not_floored(p, from, to)) return {};
  const RankSides::Lists& before = p.sides.lists(p, from);
  return by_peers(p, from, to, before, p.sides.lists(p, to), enough_ps);
}

AnyWayFloor few_peers_floor(const PlanProblem& p, const SearchState& from, const SearchState& to,
                            const RankSides::Lists& before, const RankSides::Lists& after,
                            int64_t enough_ps) {
  return is_not_floored(p, from, to) ? AnyWayFloor{}
                                     : by_peers(p, from, to, before, after, enough_ps);
}

namespace {

struct Floor {
  int64_t ps = 0;
};
struct OfBoxes {};
struct OfFloors {};

AnyWayFloor count_boxes_floor(const PlanProblem& p, const SearchState& from, const SearchState& to,
                              int64_t enough_ps) {
  // Of a bound nothing is said of other states.
  if (is_not_floored(p, from, to)) return {bound_between(p, from, to).ps, false, false};
  p.work += static_cast<int64_t>(p.listed_ranks()) / 4 + work::floors;
  ExchangeFloor floor(p, from, to);
  if (const int64_t least = floor.least_ps(); least > enough_ps) return {least};
  const int64_t one_phase = floor.ps(ExchangeWay::one_phase);
  if (from.pending != to.pending || !has_two_levels(p)) return {one_phase};
  const int64_t ps = std::min(one_phase, floor.ps(ExchangeWay::two_phases));
  if (!p.all_may_fetch) return {ps, true, floor.ps(ExchangeWay::by_all, true) >= ps};
  const int64_t by_all = floor.ps(ExchangeWay::by_all);
  AnyWayFloor least = with_by_all(p, from, to, ps, by_all, enough_ps);
  least.of_more_wanted = floor.of_more_wanted_ps(by_all) >= least.ps;
  return least;
}

}  // namespace

AnyWayFloor boxes_floor(const PlanProblem& p, const SearchState& from, const SearchState& to,
                        int64_t enough_ps) {
  const auto count = [&] { return count_boxes_floor(p, from, to, enough_ps); };
  return PairMemo<OfBoxes, AnyWayFloor>::of(p, from, to, 0, enough_ps, count);
}

namespace {

// Floors of one exchange in several ways. Of the bytes and peers there are none where they are not
// counted.
class FloorsBetween {
 public:
  FloorsBetween(const PlanProblem& p, const SearchState& from, const SearchState& to)
      : p_(p), from_(from), to_(to) {}
  int64_t ps(ExchangeWay way, int64_t enough_ps) {
    const auto number = static_cast<uint32_t>(way);
    return PairMemo<OfFloors, Floor>::of(p_, from_, to_, number, enough_ps,
                                         [&] { return Floor{count_ps(way, enough_ps)}; })
        .ps;
  }

  int64_t by_boxes_ps(ExchangeWay way) {
    return is_not_floored(p_, from_, to_) ? 0 : boxes().ps(way);
  }

 private:
  ExchangeFloor& boxes() {
    if (!between_) between_.emplace(p_, from_, to_);
    return *between_;
  }
  int64_t count_ps(ExchangeWay way, int64_t enough_ps) {
    p_.work += static_cast<int64_t>(p_.listed_ranks()) / 2 + work::floors;
    if (is_not_floored(p_, from_, to_)) return 0;
    const int64_t floor = boxes().ps(way);
    if (floor > enough_ps) return floor;
    if (way == ExchangeWay::by_all) return std::max(floor, by_all_ps(enough_ps));
    if (!p_.units_tell) return floor;
    return std::max(floor, unit_exchange_floor_ps(p_, from_, to_, way, enough_ps));
  }
  [[nodiscard]] int64_t by_all_ps(int64_t enough_ps) const {
    DigitChange change;
    if (lines_up(p_, from_, to_, change)) {
      change.longest = longest_of_piece(p_, digits_of(p_, from_), digits_of(p_, to_));
      return all_fetch_floor_ps(p_, change);
    }
    if (p_.units.empty()) return 0;
    return unit_exchange_floor_ps(p_, from_, to_, ExchangeWay::by_all, enough_ps);
  }

  const PlanProblem& p_;
  const SearchState& from_;
  const SearchState& to_;
  std::optional<ExchangeFloor> between_;  // set up once for all ways
};

}  // namespace

int64_t exchange_floor_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                          ExchangeWay way, int64_t enough_ps) {
  return FloorsBetween(p, from, to).ps(way, enough_ps);
}

WayFloors exchange_floors_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                             int64_t enough_ps) {
  WayFloors floors;
  floors.fill(INT64_MAX);
  FloorsBetween between(p, from, to);
  for (size_t k = 0; k < floors.size(); ++k) {
    if (may_go(p, from, to, exchange_ways[k])) floors[k] = between.by_boxes_ps(exchange_ways[k]);
  }
  std::array<bool, exchange_ways.size()> by_units{};
  while (true) {
    const auto least = std::min_element(floors.begin(), floors.end());
    const auto k = static_cast<size_t>(least - floors.begin());
    if (by_units[k] || *least > enough_ps) return floors;
    by_units[k] = true;
    *least = between.ps(exchange_ways[k], enough_ps);
  }
}

int64_t close_exchange_floor_ps(const PlanProblem& p, const SearchState& from,
                                const SearchState& to, ExchangeWay way, int64_t enough_ps) {
  const bool looks = way == ExchangeWay::by_all ? !p.units.empty() : p.units_tell;
  if (!looks || is_not_floored(p, from, to)) return 0;
  return unit_peers_floor_ps(p, from, to, way, enough_ps);
}

}  // namespace meshplan
