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
#include "search/unit_peers.h"
#include "search/work.h"
#include "tensor/box.h"

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
  pair.apart = sub_axes_apart(from, to);
  pair.reduced = static_cast<uint16_t>(from.pending & ~to.pending);
  pair.held = &p.unit_boxes.of(from, pair.reduced, pair.apart);
  pair.wanted = &p.unit_boxes.of(to, 0, pair.apart);
  pair.held_parts = pair.held->parts(p);
  pair.wanted_parts = pair.wanted->parts(p);
  pair.contributions = group_size(p, pair.reduced);
  pair.talking = group_size(p, static_cast<uint16_t>(p.all & ~pair.apart));
  return pair;
}

// Needs of a tensor that is empty, or larger than is counted, are none.
UnitNeed& need_of(const PlanProblem& p, const UnitRanks& unit, const UnitPair& pair) {
  if (unit.asked == pair.number) return unit.need;
  unit.asked = pair.number;
  UnitNeed before = std::move(unit.need);  // its memory
  before.wants.clear();
  before.alone.clear();
  unit.need = {};
  unit.need.wants = std::move(before.wants);
  unit.need.alone = std::move(before.alone);
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
  fetched.add(need.sent_outside, 1);
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
  const int64_t latency_ns = need.one_phase > 0 || need.sent_outside > 0
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
                            int64_t outside, int64_t element, const UnitPair& pair,
                            ExchangeWay way) {
  const bool by_all = way == ExchangeWay::by_all;
  PhaseTime fetch;
  PhaseTime share_out;
  PassedOn passed_on;
  int64_t inside = need.inside;
  const SentOut sent = sent_out(p, unit, need, pair, way);
  if (need.least > 0 || sent.elements > 0) {
    outside = std::max(outside, sent.peers);
    fetch.latency_ps =
        step_ps(unit.exchange_latency_ns, saturating_mul(outside, unit.per_peer_ns), 0);
    Slowest fetched(unit.links, element, outside);
    fetched.add(sent.elements, 1);
    for (const UnitNeed::Want& want : need.wants) {
      if (!by_all) fetched.add(want.fetched, want.members);
      // Who fetches passes on to all others that want the box.
      if (want.fetched > 0) inside = std::max(inside, want.members - 1);
    }
    if (by_all) fetched.add(need.least, unit.members());
    fetch.transfer_ps = fetched.ps();
    if (by_all && unit.level == 1) passed_on = passed_on_by_all(p, unit, need, pair.to);
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
    const int64_t outside = shards_outside(p, unit, pair, need, way);
    return way == ExchangeWay::one_phase
               ? one_phase_floor_ps(p, unit, need, outside, element, free)
               : two_phases_floor_ps(p, unit, need, outside, element, pair, way);
  });
}

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
      return two_phases_floor_ps(p, unit, need, outside.whole, element, pair, way);
    return std::min(one_phase_floor_ps(p, unit, need, outside.whole, element, free),
                    one_phase_floor_ps(p, unit, need, outside.parts, element, free));
  });
}

}  // namespace meshplan
