#include "transfer/one_phase_traffic.h"

#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "transfer/fetch_shares.h"
#include "transfer/holder_sends.h"
#include "transfer/unit_wants.h"

namespace meshplan {
namespace {

// What the members of a unit that want one box receive, by want and level.
class Received {
 public:
  explicit Received(int levels) : levels_(static_cast<size_t>(levels)) {}
  struct Sum {
    int128 bytes = 0;
    int64_t peers = 0;
  };
  void begin(size_t wants) { sums_.assign(wants * levels_, {}); }
  void add(size_t want, int level, int64_t bytes, int64_t peers) {
    Sum& sum = sums_[want * levels_ + static_cast<size_t>(level)];
    sum.bytes += bytes;
    sum.peers += peers;
  }
  [[nodiscard]] const Sum& of(size_t want, int level) const {
    return sums_[want * levels_ + static_cast<size_t>(level)];
  }

 private:
  size_t levels_;
  std::vector<Sum> sums_;
};

// One way of cutting pieces: what it makes of the listing.
struct ListedCut {
  ListedCut(const ExchangeRanks& ranks, const LevelUnits& units, Tally& of)
      : tally(of), sends(ranks, units.levels(), of), received(units.levels()) {}
  Tally& tally;
  HolderSends sends;
  Received received;
  int64_t looked = 0;  // at overlaps
};

// All ranks of a unit have the same nearest holders, so what a member receives is what its wanted
// box takes less what it holds of it.
//
//     2 x 2 on one host, [8], S(0)R -> RR, 1 B an element: one want, [0:8], of 4 members
//     it takes [0:4] from 2 holders and [4:8] from 2: 8 B from 4 peers
//     rank 0 holds [0:4] of it: 4 B from 2 peers
//     each shard is missed by 4 - 2 members: each of its holders sends 2 B to 2 peers
class OnePhase {
 public:
  OnePhase(const ExchangeRanks& ranks, const LevelUnits& units, int64_t element_bytes)
      : ranks_(ranks),
        units_(units),
        element_(element_bytes),
        nearest_(ranks, units),
        owners_(ranks.overlaps.size(), 0) {}

  // The even cut. Gives how many overlaps were looked at.
  int64_t even(Tally& tally) { return list(tally, nullptr, false).even; }
  // The even cut, but only what comes from inside units.
  int64_t even_inside(Tally& tally) { return list(tally, nullptr, true).even; }
  // The even cut, and whole pieces.
  struct Looked {
    int64_t even = 0;
    int64_t whole = 0;
  };
  Looked both(Tally& even, Tally& whole) { return list(even, &whole, false); }

 private:
  // What members of one unit ask of one shard.
  struct Asks {
    int64_t elements = 0;  // of the last that asked
    int64_t times = 0;
    bool alike = true;     // all for as many elements
    int32_t last_ask = 0;  // 1 + which of asked_by_
  };
  // The members that want one box ask for what it has of one shard.
  struct Ask {
    size_t want = 0;  // of the unit
    const Overlap* overlap = nullptr;
    int64_t members = 0;  // that miss it
    int32_t before = 0;   // the shard's ask before, as last_ask
  };

  Looked list(Tally& even_tally, Tally* whole_tally, bool inside) {
    ListedCut even(ranks_, units_, even_tally);
    std::optional<ListedCut> whole;
    if (whole_tally != nullptr) {
      whole.emplace(ranks_, units_, *whole_tally);
      asked_.assign(ranks_.shards(), 0);
      asks_.assign(ranks_.shards(), {});
    }
    for_each_unit(ranks_, units_, [&](const UnitWants& unit) {
      find_owners(unit);
      even.received.begin(unit.wants.size());
      if (whole) whole->received.begin(unit.wants.size());
      for (size_t i = 0; i < unit.wants.size(); ++i) {
        const UnitWants::Want& want = unit.wants[i];
        for (const Overlap& overlap : ranks_.overlaps_of(want.wanted)) {
          const int64_t missing = want.members - take_owners(overlap);
          const NearestHolders& near = nearest_.of(overlap.shard, static_cast<int32_t>(unit.begin));
          ++even.looked;
          if (inside && near.level > 0) continue;
          const int64_t bytes = bytes_of(overlap, element_);
          even.received.add(i, near.level, bytes, std::min<int64_t>(near.count, overlap.longest));
          if (missing > 0) even.sends.send_parts(overlap, near, element_, missing);
          if (!whole) continue;
          ++whole->looked;
          whole->received.add(i, near.level, bytes, 1);
          ask(overlap, i, missing);
        }
      }
      add_received(unit, even, true);
      if (!whole) return;
      for (const int32_t shard : touched_) serve(unit, shard, *whole);
      touched_.clear();
      asked_by_.clear();
      members_.clear();
      add_received(unit, *whole, false);
    });
    even.sends.finish();
    if (whole) whole->sends.finish();
    return {even.looked, whole ? whole->looked : 0};
  }

  // Counts for each overlap the members that want its box and hold its shard.
  void find_owners(const UnitWants& unit) {
    own_.clear();
    for (size_t m = unit.begin; m < unit.end; ++m) {
      const int32_t i = unit.of_member[m - unit.begin];
      const Overlap* own = nullptr;
      if (i >= 0 && ranks_.shard[m] >= 0)
        own = overlap_with(ranks_, unit.wants[static_cast<size_t>(i)].wanted, ranks_.shard[m]);
      own_.push_back(own);
      if (own != nullptr) ++owners_[static_cast<size_t>(own - ranks_.overlaps.data())];
    }
  }
  // How many those are; forgets them.
  int64_t take_owners(const Overlap& overlap) {
    return std::exchange(owners_[static_cast<size_t>(&overlap - ranks_.overlaps.data())], 0);
  }

  // Adds what members receive to the cut's tally. `parts`: overlaps are cut over the nearest
  // holders.
  void add_received(const UnitWants& unit, ListedCut& cut, bool parts) {
    for (size_t m = unit.begin; m < unit.end; ++m) {
      const int32_t i = unit.of_member[m - unit.begin];
      if (i < 0) continue;
      const Overlap* own = own_[m - unit.begin];
      for (int l = 0; l < units_.levels(); ++l) {
        Received::Sum in = cut.received.of(static_cast<size_t>(i), l);
        // What a member holds has a holder in the unit.
        if (l == 0 && own != nullptr) {
          const NearestHolders& near = nearest_.of(own->shard, static_cast<int32_t>(m));
          in.bytes -= bytes_of(*own, element_);
          in.peers -= parts ? std::min<int64_t>(near.count, own->longest) : 1;
        }
        auto& cell = cut.tally.at(static_cast<int32_t>(m), l);
        add_up(cell.received, saturated(in.bytes));
        cell.peers_in += in.peers;
      }
    }
  }

  // So many members of the unit at hand ask for the piece whole.
  void ask(const Overlap& overlap, size_t want, int64_t members) {
    if (members == 0) return;
    Asks& asks = asks_[static_cast<size_t>(overlap.shard)];
    if (asks.times == 0) touched_.push_back(overlap.shard);
    asks.alike = asks.times == 0 || (asks.alike && asks.elements == overlap.elements);
    asks.elements = overlap.elements;
    asks.times += members;
    asked_by_.push_back({want, &overlap, members, asks.last_ask});
    asks.last_ask = static_cast<int32_t>(asked_by_.size());
  }
  // The unit's members that miss part of the shard ask for it in rank order.
  void serve(const UnitWants& unit, int32_t shard, ListedCut& whole) {
    Asks& asks = asks_[static_cast<size_t>(shard)];
    int64_t& asked = asked_[static_cast<size_t>(shard)];
    const NearestHolders& near = nearest_.of(shard, static_cast<int32_t>(unit.begin));
    if (asks.alike) {
      const int64_t bytes = saturating_mul(asks.elements, element_);
      whole.sends.send_whole(shard, near, bytes, asked, asks.times);
      asked += asks.times;
    } else if (near.count == 1) {
      for (int32_t k = asks.last_ask; k > 0; k = ask_before(k)) {
        const Ask& by = asked_by_[static_cast<size_t>(k - 1)];
        whole.sends.send_whole(shard, near, bytes_of(*by.overlap, element_), asked, by.members);
        asked += by.members;
        ++whole.looked;
      }
    } else {
      for (const auto& [member, overlap] : in_rank_order(unit, shard, asks.last_ask)) {
        whole.sends.send_whole(shard, near, bytes_of(*overlap, element_), asked++, 1);
        ++whole.looked;
      }
    }
    asks = {};
  }
  [[nodiscard]] int32_t ask_before(int32_t k) const {
    return asked_by_[static_cast<size_t>(k - 1)].before;
  }
  // The members that miss part of a shard, with what they ask for.
  const std::vector<std::pair<int32_t, const Overlap*>>& in_rank_order(const UnitWants& unit,
                                                                       int32_t shard,
                                                                       int32_t last_ask) {
    if (members_.empty()) list_members(unit);
    in_order_.clear();
    for (int32_t k = last_ask; k > 0; k = ask_before(k)) {
      const Ask& by = asked_by_[static_cast<size_t>(k - 1)];
      for (int32_t i = members_begin_[by.want]; i < members_begin_[by.want + 1]; ++i) {
        const int32_t m = members_[static_cast<size_t>(i)];
        if (ranks_.shard[static_cast<size_t>(m)] != shard) in_order_.emplace_back(m, by.overlap);
      }
    }
    std::sort(in_order_.begin(), in_order_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return in_order_;
  }
  // Those that want each of the unit's boxes.
  void list_members(const UnitWants& unit) {
    members_begin_.assign(unit.wants.size() + 1, 0);
    for (size_t i = 0; i < unit.wants.size(); ++i)
      members_begin_[i + 1] = members_begin_[i] + static_cast<int32_t>(unit.wants[i].members);
    members_.resize(static_cast<size_t>(members_begin_.back()));
    std::vector<int32_t> next = members_begin_;
    for (size_t m = unit.begin; m < unit.end; ++m) {
      const int32_t i = unit.of_member[m - unit.begin];
      if (i >= 0)
        members_[static_cast<size_t>(next[static_cast<size_t>(i)]++)] = static_cast<int32_t>(m);
    }
  }

  const ExchangeRanks& ranks_;
  const LevelUnits& units_;
  int64_t element_;
  Nearest nearest_;
  std::vector<int64_t> owners_;      // by overlap
  std::vector<const Overlap*> own_;  // by member: what it holds of what it wants
  std::vector<int64_t> asked_;       // by shard: how many ranks so far missed part of it
  std::vector<Asks> asks_;           // by shard, of the unit at hand
  std::vector<int32_t> touched_;     // shards that it asks for
  std::vector<Ask> asked_by_;        // in the order of asking
  // Of the unit at hand the members that want each box, listed where they are asked for.
  std::vector<int32_t> members_;
  std::vector<int32_t> members_begin_;
  std::vector<std::pair<int32_t, const Overlap*>> in_order_;
};

ExchangeTraffic traffic_of(const Tally& tally, size_t ranks, int64_t looked) {
  ExchangeTraffic out;
  out.work = static_cast<int64_t>(ranks) + looked;
  out.phase[0] = tally.most();
  for (size_t r = 0; r < ranks; ++r) {
    raise(out.wire_bytes, tally.received(r));
    raise(out.sent_bytes, tally.sent(r));
  }
  out.received[0] = out.wire_bytes;
  return out;
}

}  // namespace

ListedPhase list_one_phase(const ExchangeRanks& ranks, const LevelUnits& units,
                           int64_t element_bytes, bool asks_uneven) {
  const bool several_holders = ranks.holders.size() != ranks.shards();
  OnePhase phase(ranks, units, element_bytes);
  Tally even(ranks.size(), units.levels());
  if (!several_holders) {
    const int64_t looked = phase.even(even);
    return {traffic_of(even, ranks.size(), looked), std::nullopt,
            asks_uneven && fetch_unevenly(ranks, units, even)};
  }
  Tally whole(ranks.size(), units.levels());
  const OnePhase::Looked looked = phase.both(even, whole);
  return {traffic_of(even, ranks.size(), looked.even),
          traffic_of(whole, ranks.size(), looked.whole),
          asks_uneven && fetch_unevenly(ranks, units, even)};
}

int64_t list_inside_units(const ExchangeRanks& ranks, const LevelUnits& units,
                          int64_t element_bytes, Tally& inner) {
  return OnePhase(ranks, units, element_bytes).even_inside(inner);
}

}  // namespace meshplan
