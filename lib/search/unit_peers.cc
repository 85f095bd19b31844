#include "search/unit_peers.h"

#include <algorithm>
#include <optional>

#include "base/int_math.h"
#include "search/count_unit_need.h"
#include "search/exchange_peers.h"
#include "search/search_state.h"
#include "search/work.h"
#include "transfer/two_phases.h"

namespace meshplan {
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

}  // namespace

int64_t shards_outside(const PlanProblem& p, const UnitRanks& unit, const UnitPair& pair,
                       UnitNeed& need, ExchangeWay way) {
  count_shards(p, unit, pair, need);
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

namespace {

// Of one phase, the most that ask one member. All holders of a box are as near to who is outside.
void count_asking(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                  const UnitPair& pair, PeersOutside& most) {
  const UnitBoxes& held = pair.held->of(p, unit.number);
  const int64_t wanting = floor_div(pair.talking, pair.wanted_parts);  // one box
  p.work += static_cast<int64_t>(need.alone.size()) * work::peers;
  for (const UnitNeed::Alone& alone : need.alone) {
    const UnitBoxes::Of& hold = held.box[alone.held];
    int64_t asking = wanting;
    int64_t longest = p.idle_longest;  // of a piece, at least
    for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
      const int64_t lo = held.low[as_index(d) * held.size() + alone.held];
      const int64_t hi = held.high[as_index(d) * held.size() + alone.held];
      asking = saturating_mul(asking, parts_met(p, pair.to, d, lo, hi));
      if (pair.to.length(d) == 0) longest = std::max(longest, hi - lo);
    }
    const int64_t outside = saturating_mul(asking - alone.asking, hold.contributions);
    const int64_t asked = std::min(floor_div(hold.members, hold.contributions), longest);
    most.whole = std::max(most.whole, ceil_div(outside, hold.members));
    most.parts = std::max(most.parts, ceil_div(saturating_mul(outside, asked), hold.members));
  }
}

}  // namespace

PeersOutside peers_outside(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                           const UnitPair& pair, ExchangeWay way) {
  const SearchState& from = pair.from;
  const UnitBoxes& wanted = pair.wanted->of(p, unit.number);
  const unsigned held = sharding(from, p.dims) | pair.reduced | pair.apart;
  const int64_t holders = group_size(p, static_cast<uint16_t>(p.all & ~held));
  p.work += static_cast<int64_t>(need.wants.size()) * work::peers;
  const bool outermost = as_index(unit.level) + 1 == p.topology->levels.size();
  PeersOutside most;
  std::optional<Stretches> stretches;
  if (way == ExchangeWay::by_all && knows_stretches(p, unit, pair)) stretches.emplace(unit, need);
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
    if (stretches) stretches->add(need.wants[w], outside);
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
  if (stretches) most.whole = std::max(most.whole, stretches->peers());
  if (way == ExchangeWay::one_phase) count_asking(p, unit, need, pair, most);
  return most;
}

namespace {

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

SentOut sent_out(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                 const UnitPair& pair, ExchangeWay way) {
  SentOut sent;
  if (need.alone.empty()) return sent;
  const UnitBoxes& held = pair.held->of(p, unit.number);
  // Of other units that want one element, where they are innermost ones.
  const int64_t wanting = unit.level == 1 ? exchange_peers(p, pair.from, pair.to).wanting_units : 1;
  for (const UnitNeed::Alone& alone : need.alone) {
    const UnitBoxes::Of& hold = held.box[alone.held];
    const int64_t fetched = saturating_mul(hold.elements, wanting) - alone.wanted;
    sent.elements = std::max(sent.elements, ceil_div(fetched, hold.members));
  }
  sent.elements = saturating_mul(sent.elements, p.idle_elements);
  // Members want one box each at most, so that an even share is none larger than a box.
  const int64_t box = box_elements(p, pair.to);
  const int64_t most = way == ExchangeWay::by_all ? longest_stretch(p, pair.to, box) : box;
  sent.peers = ceil_div(sent.elements, most);
  return sent;
}

}  // namespace meshplan
