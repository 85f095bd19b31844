#include "search/unit_needs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/finer_tiers.h"
#include "cost/pipeline.h"
#include "search/count_unit_need.h"
#include "search/search_state.h"
#include "search/work.h"
#include "tensor/box.h"
#include "transfer/two_phases.h"

namespace meshplan {
namespace {

// Whether contributions may come to lie anywhere on the way.
bool makes_contributions(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return p.kept != 0 || from.made != 0 || to.made != 0 || joined_sub_axes(p, from, to) != 0;
}

// Pending before and after: ranks that differ on these do not talk.
uint16_t sub_axes_apart(const SearchState& from, const SearchState& to) {
  return static_cast<uint16_t>((from.pending | from.made) & (to.pending | to.made));
}

// Of an element in an exchange between two states.
int64_t element_bytes_between(const PlanProblem& p, const SearchState& from,
                              const SearchState& to) {
  return (from.pending & ~to.pending) != 0 ? p.reduce_element : p.element;
}

const UnitPair& pair_of(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  UnitPair& pair = p.unit_pair;
  if (pair.number != 0 && pair.from == from && pair.to == to) return pair;
  ++pair.number;
  pair.from = from;
  pair.to = to;
  if (p.total_elements == 0 || p.total_elements == INT64_MAX) return pair;
  p.sides.limit_memory();
  p.unit_boxes.limit_memory(p.units.size() * p.units.front().count);
  const uint16_t apart = sub_axes_apart(from, to);
  const auto reduced = static_cast<uint16_t>(from.pending & ~to.pending);
  pair.held = &p.unit_boxes.of(from, reduced, apart);
  pair.wanted = &p.unit_boxes.of(to, 0, apart);
  pair.held_parts = pair.held->parts(p);
  pair.wanted_parts = pair.wanted->parts(p);
  pair.contributions = group_size(p, reduced);
  pair.talking = group_size(p, static_cast<uint16_t>(p.all & ~apart));
  return pair;
}

// Needs of a tensor that is empty, or larger than is counted, are none.
UnitNeed& need_of(const PlanProblem& p, const UnitRanks& unit, const UnitPair& pair) {
  if (unit.asked == pair.number) return unit.need;
  unit.asked = pair.number;
  std::vector<UnitNeed::Want> wants = std::move(unit.need.wants);  // its memory
  wants.clear();
  unit.need = {};
  unit.need.wants = std::move(wants);
  if (p.total_elements > 0 && p.total_elements < INT64_MAX)
    count_unit_need(p, pair, pair.held->of(p, unit.number), pair.wanted->of(p, unit.number),
                    unit.need);
  return unit.need;
}

}  // namespace

const UnitNeed& unit_need(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
                          const SearchState& to) {
  return need_of(p, unit, pair_of(p, from, to));
}

namespace {

// Where all members fetch, each has a stretch of what the unit misses, box after box. Stretches are
// of one length but for rounding within a piece (transfer/two_phases.h), so a box lies in few of
// them, and some member fetches many of its shards, each from a holder of its own.
//
//     8 members that want a box each, which meets 16 shards outside: a box lies in two stretches at
//     most, so that some member has 8 peers at least; the first box lies in one, so that one has 16
class Stretches {
 public:
  Stretches(const UnitRanks& unit, const UnitNeed& need) : members_(unit.members()) {
    for (const UnitNeed::Want& want : need.wants) all_ += want.fetched;
  }
  // A box that meets so many shards outside.
  void add(const UnitNeed::Want& want, int64_t shards) {
    if (want.fetched == 0) return;
    const int128 stretches = (int128{want.fetched} * members_ + all_ - 1) / all_;
    most_ = std::max(most_, ceil_div(shards, std::min(members_, saturated(stretches + 1))));
    // One box is the first, but it is not known which.
    first_ = std::min(first_, ceil_div(shards, saturated(stretches)));
  }
  // That some member has at least.
  [[nodiscard]] int64_t peers() const { return first_ == INT64_MAX ? 0 : std::max(most_, first_); }

 private:
  int64_t members_;
  int128 all_ = 0;
  int64_t most_ = 0;
  int64_t first_ = INT64_MAX;
};

// Whether what is missed of each box is counted to the element, and all members of a unit of the
// innermost level talk to one another.
bool knows_stretches(const PlanProblem& p, const UnitRanks& unit, const UnitPair& pair) {
  return unit.level == 1 && sums_fit(p) && pair.contributions == 1 && pair.talking == p.ranks;
}

// Of each box that members want, how many shards of the source, each contribution to a sum by
// itself, it meets and no member holds part of, at least.
void count_shards(const PlanProblem& p, const UnitRanks& unit, const UnitPair& pair,
                  UnitNeed& need) {
  if (need.shards_known || need.wants.empty()) return;
  need.shards_known = true;
  const UnitBoxes& wanted = pair.wanted->of(p, unit.number);
  const RankSides::Lists& held = p.sides.lists(p, pair.from);
  for (size_t w = 0; w < need.wants.size(); ++w) {
    if (wanted.box[w].elements == 0) continue;
    int64_t shards = pair.contributions;
    for (size_t d = 0; d < as_index(p.dims) && !is_scalar(p); ++d) {
      const int64_t each = held.along[d]->widest;
      const int64_t lo = wanted.low[d * wanted.size() + w];
      const int64_t hi = wanted.high[d * wanted.size() + w];
      shards =
          saturating_mul(shards, p.even ? ceil_div(hi, each) - lo / each : ceil_div(hi - lo, each));
    }
    need.wants[w].shards = std::max<int64_t>(0, shards - need.wants[w].near);
  }
}

// Of these the most that one member fetches at least: in two phases those that want one box share
// its shards, or all members do.
int64_t shards_outside(const PlanProblem& p, const UnitRanks& unit, const UnitPair& pair,
                       const UnitNeed& need, ExchangeWay way) {
  const bool by_all = way == ExchangeWay::by_all;
  int64_t most = 0;
  for (const UnitNeed::Want& want : need.wants) {
    const int64_t sharing = by_all ? unit.members() : want.members;
    if (want.shards <= most) continue;
    most = std::max(most,
                    way == ExchangeWay::one_phase ? want.shards : ceil_div(want.shards, sharing));
  }
  if (!by_all || !knows_stretches(p, unit, pair)) return most;
  Stretches stretches(unit, need);
  for (const UnitNeed::Want& want : need.wants) stretches.add(want, want.shards);
  return std::max(most, stretches.peers());
}

}  // namespace

namespace {

// The most that `ps_of` says of a unit; once it is above `enough_ps` no other unit is asked. The
// one that said so is asked first the next time.
template <typename PsOf>
int64_t most_of_units(const PlanProblem& p, int64_t enough_ps, PsOf&& ps_of) {
  int64_t most = 0;
  const size_t first = p.telling_unit;
  for (size_t i = 0; i < p.units.size(); ++i) {
    const size_t k = first + i < p.units.size() ? first + i : first + i - p.units.size();
    most = std::max(most, ps_of(p.units[k]));
    if (most <= enough_ps) continue;
    p.telling_unit = k;
    break;
  }
  return most;
}

}  // namespace

namespace {

// Coordinates on these sub-axes that members of a grid have.
int64_t inside_of(const UnitRanks& unit, unsigned sub_axes) {
  int64_t all = 1;
  for (; sub_axes != 0; sub_axes &= sub_axes - 1)
    all *= unit.inside[as_index(__builtin_ctz(sub_axes))];
  return all;
}

// The sub-axes that decide what grids of members need between two states.
struct GridAsked {
  GridAsked(const PlanProblem& p, const SearchState& from, const SearchState& to)
      : apart(sub_axes_apart(from, to)), reduced(from.pending & ~unsigned{to.pending}) {
    const unsigned talking = p.all & ~apart;
    holders = talking & ~reduced & ~unsigned{p.sides.lists(p, from).sub_axes};
    wanting = talking & ~unsigned{p.sides.lists(p, to).sub_axes};
    wanting_ranks = group_size(p, static_cast<uint16_t>(wanting));
  }
  unsigned apart = 0;  // ranks that differ on these do not talk
  unsigned reduced = 0;
  unsigned holders = 0;  // of a shard differ on these
  unsigned wanting = 0;  // ranks that want one box do
  int64_t wanting_ranks = 1;
};

// The larger of UnitNeed's least and leaving, where members are a grid: then what they hold and
// want together are products over the tensor dims. Of shards whose holders are all inside as many
// elements may stay as `wanting` ranks' wishes there allow.
int64_t need_of_grid(const PlanProblem& p, const UnitRanks& unit, const GridAsked& asked,
                     const PairPlaces& at) {
  ListPairs::InUnit all{1, 1, 1};
  for (int d = 0; d < p.dims; ++d) {
    const ListPairs::InUnit along = p.pairs.in_unit(at[as_index(d)], unit.number);
    all = {all.held * along.held, all.wanted * along.wanted, all.both * along.both};
  }
  int64_t most = all.wanted - ((asked.reduced & ~unit.whole) == 0 ? all.both : 0);
  if ((asked.holders & ~unit.whole) == 0) {
    const int64_t stay = floor_div(all.both * inside_of(unit, asked.wanting), asked.wanting_ranks);
    most = std::max(most, all.held - stay);
  }
  return most * inside_of(unit, asked.apart) * p.idle_elements;
}

}  // namespace

namespace {

struct UnitShare {
  int64_t bytes = 0;
  int64_t members = 1;
};

}  // namespace

int64_t unit_bound_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                      const PairPlaces& at, const UnitAsked& asked, int64_t enough_ps) {
  if (makes_contributions(p, from, to)) return 0;
  const bool grids = !is_scalar(p) && p.total_elements > 0 && sums_fit(p);
  const int64_t element = wire_element(p, from, to);
  const uint32_t every_level = (1U << p.topology->levels.size()) - 1;
  // Of units of one level the time is that of the one whose members need most each.
  std::array<UnitShare, max_levels> most{};
  const GridAsked of_grids(p, from, to);
  return most_of_units(p, enough_ps, [&](const UnitRanks& unit) {
    p.work += work::unit_bound;
    int64_t elements = 0;
    if (grids && unit.grid) {
      elements = need_of_grid(p, unit, of_grids, at);
    } else {
      const UnitNeed& need = unit_need(p, unit, from, to);
      elements = std::max(need.least, need.leaving);
    }
    const int64_t bytes = saturating_mul(elements, element);
    UnitShare& share = most[as_index(unit.level)];
    if (int128{bytes} * share.members <= int128{share.bytes} * unit.members()) return int64_t{0};
    share = {bytes, unit.members()};
    return p.times.ps({asked.met, unit.level, true, asked.several}, bytes, unit.members(),
                      every_level >> unit.level << unit.level);
  });
}

namespace {

int64_t step_ps(int64_t latency_ns, int64_t peers_ns, int64_t transfer) {
  return saturating_add(saturating_mul(saturating_add(latency_ns, peers_ns), 1000), transfer);
}

// What takes longest of several shares of bytes that ranks of one level's links send or receive,
// from or to so many peers or more.
class Slowest {
 public:
  Slowest(const TopologyLevel& level, int64_t element, int64_t peers)
      : level_(level), element_(element), peers_(peers) {}
  void add(int64_t elements, int64_t ranks) {
    ps_ =
        std::max(ps_, least_transfer_ps(level_, saturating_mul(elements, element_), ranks, peers_));
  }
  [[nodiscard]] int64_t ps() const { return ps_; }

 private:
  const TopologyLevel& level_;
  int64_t element_;
  int64_t peers_;
  int64_t ps_ = 0;
};

// The sub-axes on which the holders of a shard differ, where some may be asked though others are
// nearer; 0 where none may.
unsigned sub_axes_of_holders(const PlanProblem& p, const SearchState& from, const SearchState& to,
                             ExchangeWay way) {
  if (!may_have_far_share(p, way) || (from.pending & ~to.pending) != 0) return 0;
  return p.all & ~unsigned{sharding(from, p.dims)} & ~unsigned{from.pending} & ~unsigned{from.made};
}

// What members fetch from outside, and from each other where one level's links join them. `free`:
// sub_axes_of_holders.
int64_t one_phase_floor_ps(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                           int64_t outside, int64_t element, unsigned free) {
  const TopologyLevel& inner = p.topology->levels.front();
  Slowest fetched(unit.links, element, outside);
  fetched.add(need.one_phase, unit.members());
  fetched.add(need.one_member, 1);
  int64_t slowest = fetched.ps();
  int64_t peers_ns = saturating_mul(outside, unit.per_peer_ns);
  if (unit.level == 1) {
    Slowest passed(inner, element, need.inside);
    passed.add(need.missing - need.one_phase, unit.members());
    passed.add(need.one_sender, 1);
    slowest = std::max(slowest, passed.ps());
    peers_ns = saturating_add(peers_ns, saturating_mul(need.inside, inner.per_peer_ns));
  }
  if (slowest == 0) return 0;
  const int64_t latency_ns = need.one_phase > 0
                                 ? unit.exchange_latency_ns
                                 : std::min(inner.latency_ns, unit.exchange_latency_ns);
  const int64_t ps = step_ps(latency_ns, peers_ns, slowest);
  if (unit.level != 1 || free == 0 || (unit.grid && (free & ~unsigned{unit.whole}) == 0)) return ps;
  // With a far share part of what would come from inside comes from outside, of a rank at least.
  if (outside == 0) peers_ns = saturating_add(peers_ns, unit.per_peer_ns);
  const int64_t outer_mb_per_s = exchange_mb_per_s(unit.links);
  const auto together = [&](int64_t elements, int64_t ranks, int64_t fetching) {
    const int64_t mb_per_s =
        saturating_add(exchange_mb_per_s(inner), saturating_mul(fetching, outer_mb_per_s));
    return transfer_ps(saturating_mul(elements, element), ranks, mb_per_s);
  };
  slowest = std::max({fetched.ps(), together(need.missing, unit.members(), 1),
                      together(need.one_sender, 1, unit.members())});
  return std::min(ps, step_ps(unit.exchange_latency_ns, peers_ns, slowest));
}

// Of a piece that ranks of `to` want: it is cut along its longest side, so that a slice has no more
// than what the box has across its own longest.
int64_t largest_slice(const PlanProblem& p, const SearchState& to) {
  int64_t longest = p.idle_longest;
  const RankSides::Lists& wanted = p.sides.lists(p, to);
  for (size_t d = 0; d < as_index(p.dims) && !is_scalar(p); ++d)
    longest = std::max(longest, wanted.along[d]->widest);
  return ceil_div(box_elements(p, to), longest);
}

}  // namespace

int64_t longest_stretch(const PlanProblem& p, const SearchState& to, int64_t even) {
  return saturating_add(even, even / 64 + 1 + largest_slice(p, to));
}

namespace {

// How many ranks outside ask some member at least: none fetches more than the box that it wants,
// or, where all fetch, than its share of what its unit misses.
int64_t asked_from_outside(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                           const SearchState& to, ExchangeWay way) {
  if (need.leaving == 0) return 0;
  // Members want one box each at most, so that an even share is none larger than a box.
  const int64_t box = box_elements(p, to);
  const int64_t most = way == ExchangeWay::by_all ? longest_stretch(p, to, box) : box;
  return ceil_div(need.leaving, saturating_mul(unit.members(), most));
}

// Fetched by all, what some member receives from others of its unit at least, and from how many:
// all that the unit fetches for it but for its own share.
struct PassedOn {
  int64_t elements = 0;
  int64_t peers = 0;
};
PassedOn passed_on_by_all(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                          const SearchState& to) {
  int64_t all = 0;
  int64_t most = 0;
  for (const UnitNeed::Want& want : need.wants) {
    all = saturating_add(all, want.fetched);
    most = std::max(most, want.fetched);
  }
  const int64_t even = ceil_div(all, unit.members());
  const int64_t share = longest_stretch(p, to, even);
  return {std::max<int64_t>(0, most - share), std::max<int64_t>(0, ceil_div(most, share) - 1)};
}

// Members that want one box share what is fetched of it, or all members do. Then they pass on what
// each has fetched, inside the unit, and what they held before.
int64_t two_phases_floor_ps(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                            int64_t outside, int64_t element, const SearchState& to,
                            ExchangeWay way) {
  const bool by_all = way == ExchangeWay::by_all;
  PhaseTime fetch;
  PhaseTime share_out;
  PassedOn passed_on;
  int64_t inside = need.inside;
  if (need.least > 0 || need.leaving > 0) {
    outside = std::max(outside, asked_from_outside(p, unit, need, to, way));
    fetch.latency_ps =
        step_ps(unit.exchange_latency_ns, saturating_mul(outside, unit.per_peer_ns), 0);
    Slowest fetched(unit.links, element, outside);
    fetched.add(need.leaving, unit.members());
    for (const UnitNeed::Want& want : need.wants) {
      if (!by_all) fetched.add(want.fetched, want.members);
      // Who fetches passes on to all others that want the box.
      if (want.fetched > 0) inside = std::max(inside, want.members - 1);
    }
    if (by_all) fetched.add(need.least, unit.members());
    fetch.transfer_ps = fetched.ps();
    if (by_all && unit.level == 1) passed_on = passed_on_by_all(p, unit, need, to);
  }
  const int64_t passed = need.missing - need.least;
  if ((passed > 0 || passed_on.elements > 0) && unit.level == 1) {
    const TopologyLevel& inner = p.topology->levels.front();
    inside = std::max(inside, passed_on.peers);
    Slowest shared(inner, element, inside);
    shared.add(passed, unit.members());
    shared.add(passed_on.elements, 1);
    shared.add(need.one_sender, 1);
    share_out = {step_ps(inner.latency_ns, saturating_mul(inside, inner.per_peer_ns), 0),
                 shared.ps()};
  }
  return pipelined_ps(fetch, share_out, best_chunks(fetch, share_out));
}

}  // namespace

int64_t unit_exchange_floor_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                               ExchangeWay way, int64_t enough_ps) {
  const int64_t element = element_bytes_between(p, from, to);
  const unsigned free = sub_axes_of_holders(p, from, to, way);
  const UnitPair& pair = pair_of(p, from, to);
  return most_of_units(p, enough_ps, [&](const UnitRanks& unit) {
    p.work += work::unit_floor;
    UnitNeed& need = need_of(p, unit, pair);
    count_shards(p, unit, pair, need);
    const int64_t outside = shards_outside(p, unit, pair, need, way);
    return way == ExchangeWay::one_phase
               ? one_phase_floor_ps(p, unit, need, outside, element, free)
               : two_phases_floor_ps(p, unit, need, outside, element, to, way);
  });
}

namespace {

// Of other units, in one exchange: the most that one member has, in one phase if pieces go whole
// and if each is cut over all its holders.
struct PeersOutside {
  int64_t whole = 0;
  int64_t parts = 0;
};
PeersOutside peers_outside(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                           const UnitPair& pair, ExchangeWay way) {
  const SearchState& from = pair.from;
  const auto reduced = static_cast<uint16_t>(from.pending & ~pair.to.pending);
  const UnitBoxes& wanted = pair.wanted->of(p, unit.number);
  const unsigned held = sharding(from, p.dims) | reduced | sub_axes_apart(from, pair.to);
  const int64_t holders = group_size(p, static_cast<uint16_t>(p.all & ~held));
  p.work += static_cast<int64_t>(need.wants.size()) * work::peers;
  const bool outermost = as_index(unit.level) + 1 == p.topology->levels.size();
  PeersOutside most;
  const bool by_stretches = way == ExchangeWay::by_all && knows_stretches(p, unit, pair);
  Stretches stretches(unit, need);
  for (size_t w = 0; w < need.wants.size(); ++w) {
    if (wanted.box[w].elements == 0) continue;
    int64_t shards = pair.contributions;
    int64_t longest = p.idle_longest;  // of a piece, at least
    for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
      const int64_t lo = wanted.low[as_index(d) * wanted.size() + w];
      const int64_t hi = wanted.high[as_index(d) * wanted.size() + w];
      shards = saturating_mul(shards, parts_met(p, from, d, lo, hi));
      if (from.length(d) == 0) longest = std::max(longest, hi - lo);
    }
    int64_t outside = std::max<int64_t>(0, shards - need.wants[w].near);
    if (by_stretches) stretches.add(need.wants[w], outside);
    if (way == ExchangeWay::by_all) outside = ceil_div(outside, unit.members());
    if (way == ExchangeWay::two_phases && outside > 0) {
      const int64_t members = need.wants[w].members;
      // Innermost units share: of larger ones some shards that lie inside may be fetched, too, and
      // with as many as there are members none is cut.
      const int64_t parts = unit.level == 1 ? parts_to_share(outside, members) : 1;
      outside = ceil_div(longest < parts ? outside : outside * parts, members);
    }
    most.whole = std::max(most.whole, outside);
    // Nearer holders there may be on levels between.
    const int64_t asked = outermost ? std::min(holders, longest) : 1;
    most.parts = std::max(most.parts, saturating_mul(outside, asked));
  }
  if (by_stretches) most.whole = std::max(most.whole, stretches.peers());
  return most;
}

}  // namespace

int64_t unit_peers_floor_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                            ExchangeWay way, int64_t enough_ps) {
  const int64_t element = element_bytes_between(p, from, to);
  const unsigned free = sub_axes_of_holders(p, from, to, way);
  const UnitPair& pair = pair_of(p, from, to);
  return most_of_units(p, enough_ps, [&](const UnitRanks& unit) {
    const UnitNeed& need = need_of(p, unit, pair);
    if (need.wants.empty()) return int64_t{0};
    const PeersOutside outside = peers_outside(p, unit, need, pair, way);
    if (way != ExchangeWay::one_phase)
      return two_phases_floor_ps(p, unit, need, outside.whole, element, to, way);
    return std::min(one_phase_floor_ps(p, unit, need, outside.whole, element, free),
                    one_phase_floor_ps(p, unit, need, outside.parts, element, free));
  });
}

}  // namespace meshplan
