#include "transfer/one_phase_traffic.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/int_math.h"
#include "transfer/fetch_shares.h"
#include "transfer/holder_sends.h"
#include "transfer/unit_wants.h"

namespace meshplan {
namespace {

struct Sum {
  int128 bytes = 0;
  int64_t peers = 0;
  void add(int64_t more, int64_t more_peers) {
    bytes += more;
    peers += more_peers;
  }
};
// Of the box at hand, by level: what a member receives that holds nothing of it.
using Received = std::array<Sum, max_levels>;

// One way of cutting pieces: what it makes of the listing.
struct ListedCut {
  ListedCut(const ExchangeRanks& ranks, const LevelUnits& units, Tally& of)
      : tally(of), sends(ranks, units.levels(), of) {}
  Tally& tally;
  HolderSends sends;
  int64_t looked = 0;  // at overlaps
  Received received{};
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
        one_holder_each_(ranks.holders.size() == ranks.shards()),
        nearest_(ranks, units),
        own_(one_holder_each_ ? 0 : ranks.shards()) {}

  // The even cut; `inside`: but only what comes from inside units. Gives how many overlaps were
  // looked at.
  int64_t even(Tally& tally, bool inside) {
    return one_holder_each_ ? list_alone(tally, inside) : list(tally, nullptr, inside).even;
  }
  // Whether cuts are all the same: of one piece.
  [[nodiscard]] bool one_holder_each() const { return one_holder_each_; }
  // The even cut, and whole pieces.
  struct Looked {
    int64_t even = 0;
    int64_t whole = 0;
  };
  Looked both(Tally& even, Tally& whole) { return list(even, &whole, false); }
  // Whether there are more turns than are listed: whole pieces are not known then.
  [[nodiscard]] bool too_many_turns() const { return turns_listed_ > most_turns_listed; }

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
    const UnitWants::Want* want = nullptr;
    const Overlap* overlap = nullptr;
    int64_t members = 0;  // that miss it
    int32_t before = 0;   // the shard's ask before, as last_ask
  };
  // Members that want the box at hand and hold the shard, and what the box has of it.
  struct Own {
    int64_t members = 0;
    int64_t bytes = 0;
    int64_t parts = 0;  // from so many holders by the even cut
  };

  // Of shards with one holder each.
  int64_t list_alone(Tally& tally, bool inside) {
    int64_t looked = 0;
    owned_.assign(ranks_.size(), 0);
    for_each_unit(ranks_, units_, [&](const UnitWants& unit) {
      for (const UnitWants::Want& want : unit.wants) {
        Received received{};
        const auto overlaps = ranks_.overlaps_of(want.wanted);
        looked += std::ssize(overlaps);
        for (const Overlap& overlap : overlaps) {
          const int level = nearest_.of(overlap.shard, static_cast<int32_t>(unit.begin)).level;
          if (inside && level > 0) continue;
          const int64_t bytes = bytes_of(overlap, element_);
          received[static_cast<size_t>(level)].add(bytes, 1);
          const auto holder = ranks_.holders[static_cast<size_t>(overlap.shard)];
          int64_t missing = want.count;
          if (level == 0 && ranks_.wanted[static_cast<size_t>(holder)] == want.wanted) {
            owned_[static_cast<size_t>(holder)] = bytes;
            --missing;
          }
          Tally::Cell& cell = tally.at(holder, level);
          add_up(cell.sent, saturating_mul(bytes, missing));
          cell.peers_out += missing;
        }
        add_received(unit.members_of(want), received, tally, [&](int32_t m) {
          const int64_t bytes = owned_[static_cast<size_t>(m)];
          return Sum{bytes, bytes > 0 ? 1 : 0};
        });
      }
    });
    return looked;
  }
  // Adds what members that want one box receive to the tally; own_of(m): what of it is m's own.
  template <class OwnOf>
  void add_received(std::span<const int32_t> members, const Received& received, Tally& tally,
                    OwnOf&& own_of) const {
    for (int l = 0; l < units_.levels(); ++l) {
      const Sum& in = received[static_cast<size_t>(l)];
      if (in.peers == 0) continue;
      for (const int32_t m : members) {
        // What a member holds has a holder in the unit.
        const Sum own = l == 0 ? own_of(m) : Sum{};
        Tally::Cell& cell = tally.at(m, l);
        add_up(cell.received, saturated(in.bytes - own.bytes));
        cell.peers_in += in.peers - own.peers;
      }
    }
  }

  Looked list(Tally& even_tally, Tally* whole_tally, bool inside) {
    ListedCut even(ranks_, units_, even_tally);
    std::optional<ListedCut> whole;
    if (whole_tally != nullptr) {
      whole.emplace(ranks_, units_, *whole_tally);
      asked_.assign(ranks_.shards(), 0);
      asks_.assign(ranks_.shards(), {});
      asked_by_want_.assign(ranks_.wants(), nullptr);
    }
    for_each_unit(ranks_, units_, [&](const UnitWants& unit) {
      for (const UnitWants::Want& want : unit.wants) {
        const std::span<const int32_t> members = unit.members_of(want);
        find_owners(members);
        list_want(want, unit, inside, even, whole ? &*whole : nullptr);
        add_received(members, even.received, even.tally,
                     [&](int32_t m) { return own_of(m, true); });
        if (whole)
          add_received(members, whole->received, whole->tally,
                       [&](int32_t m) { return own_of(m, false); });
        forget_owners(members);
      }
      if (!whole) return;
      for (const int32_t shard : touched_) serve(unit, shard, *whole);
      touched_.clear();
      asked_by_.clear();
    });
    even.sends.finish();
    if (whole) whole->sends.finish();
    return {even.looked, whole ? whole->looked : 0};
  }

  // What the box takes of each shard that it meets. `whole`: nullptr where it is not asked for.
  void list_want(const UnitWants::Want& want, const UnitWants& unit, bool inside, ListedCut& even,
                 ListedCut* whole) {
    even.received.fill({});
    if (whole != nullptr) whole->received.fill({});
    for (const Overlap& overlap : ranks_.overlaps_of(want.wanted)) {
      const NearestHolders& near = nearest_.of(overlap.shard, static_cast<int32_t>(unit.begin));
      ++even.looked;
      if (inside && near.level > 0) continue;
      const int64_t bytes = bytes_of(overlap, element_);
      const int64_t parts = std::min<int64_t>(near.count, overlap.longest);
      int64_t missing = want.count;
      if (near.level == 0) {
        Own& own = own_[static_cast<size_t>(overlap.shard)];
        missing -= own.members;
        own.bytes = bytes;
        own.parts = parts;
      }
      even.received[static_cast<size_t>(near.level)].add(bytes, parts);
      if (missing > 0) even.sends.send_parts(overlap, near, element_, missing);
      if (whole == nullptr) continue;
      ++whole->looked;
      whole->received[static_cast<size_t>(near.level)].add(bytes, 1);
      if (missing > 0) ask(overlap, want, missing);
    }
  }

  void find_owners(std::span<const int32_t> members) {
    for (const int32_t m : members) {
      if (const int32_t shard = ranks_.shard[static_cast<size_t>(m)]; shard >= 0) {
        Own& own = own_[static_cast<size_t>(shard)];
        own = {own.members + 1, 0, 0};
      }
    }
  }
  void forget_owners(std::span<const int32_t> members) {
    for (const int32_t m : members) {
      if (const int32_t shard = ranks_.shard[static_cast<size_t>(m)]; shard >= 0)
        own_[static_cast<size_t>(shard)].members = 0;
    }
  }

  // What member m holds of the box at hand, which at least one member wants; `parts`: overlaps are
  // cut over the nearest holders.
  [[nodiscard]] Sum own_of(int32_t m, bool parts) const {
    const int32_t shard = ranks_.shard[static_cast<size_t>(m)];
    if (shard < 0) return {};
    const Own& own = own_[static_cast<size_t>(shard)];
    return {own.bytes, parts ? own.parts : std::min<int64_t>(1, own.parts)};
  }

  // So many members of the unit at hand ask for the piece whole.
  void ask(const Overlap& overlap, const UnitWants::Want& want, int64_t members) {
    Asks& asks = asks_[static_cast<size_t>(overlap.shard)];
    if (asks.times == 0) touched_.push_back(overlap.shard);
    asks.alike = asks.times == 0 || (asks.alike && asks.elements == overlap.elements);
    asks.elements = overlap.elements;
    asks.times += members;
    asked_by_.push_back({&want, &overlap, members, asks.last_ask});
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
      HolderSends::Turns turns = whole.sends.turns(shard, near, asked);
      for_each_asking(unit, shard, asks, [&](const Overlap& overlap) {
        turns.send(bytes_of(overlap, element_));
        ++asked;
        ++whole.looked;
      });
    }
    asks = {};
  }
  [[nodiscard]] int32_t ask_before(int32_t k) const {
    return asked_by_[static_cast<size_t>(k - 1)].before;
  }
  // Calls visit(what it asks for) for every member that misses part of a shard, in rank order.
  template <class Visitor>
  void for_each_asking(const UnitWants& unit, int32_t shard, const Asks& asks, Visitor&& visit) {
    constexpr size_t sorting = 8;  // takes as long, per member that asks, as a look at so many
    const size_t members = unit.end - unit.begin;
    const size_t sorted = sorting * static_cast<size_t>(asks.times);
    turns_listed_ += static_cast<int64_t>(std::min(sorted, members));
    if (too_many_turns()) return;
    if (sorted < members) {
      for (const auto& [member, overlap] : in_rank_order(unit, shard, asks.last_ask))
        visit(*overlap);
      return;
    }
    for (int32_t k = asks.last_ask; k > 0; k = ask_before(k)) {
      const Ask& by = asked_by_[static_cast<size_t>(k - 1)];
      asked_by_want_[static_cast<size_t>(by.want->wanted)] = by.overlap;
    }
    for (size_t m = unit.begin; m < unit.end; ++m) {
      if (ranks_.wanted[m] < 0 || ranks_.shard[m] == shard) continue;
      const Overlap* const overlap = asked_by_want_[static_cast<size_t>(ranks_.wanted[m])];
      if (overlap != nullptr) visit(*overlap);
    }
    for (int32_t k = asks.last_ask; k > 0; k = ask_before(k))
      asked_by_want_[static_cast<size_t>(asked_by_[static_cast<size_t>(k - 1)].want->wanted)] =
          nullptr;
  }
  // The members that miss part of a shard, with what they ask for.
  const std::vector<std::pair<int32_t, const Overlap*>>& in_rank_order(const UnitWants& unit,
                                                                       int32_t shard,
                                                                       int32_t last_ask) {
    in_order_.clear();
    for (int32_t k = last_ask; k > 0; k = ask_before(k)) {
      const Ask& by = asked_by_[static_cast<size_t>(k - 1)];
      for (const int32_t m : unit.members_of(*by.want)) {
        if (ranks_.shard[static_cast<size_t>(m)] != shard) in_order_.emplace_back(m, by.overlap);
      }
    }
    std::sort(in_order_.begin(), in_order_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return in_order_;
  }

  const ExchangeRanks& ranks_;
  const LevelUnits& units_;
  int64_t element_;
  bool one_holder_each_;
  Nearest nearest_;
  int64_t turns_listed_ = 0;
  std::vector<int64_t> owned_;    // by rank: bytes that it has of what it wants
  std::vector<Own> own_;          // by shard
  std::vector<int64_t> asked_;    // by shard: how many ranks so far missed part of it
  std::vector<Asks> asks_;        // by shard, of the unit at hand
  std::vector<int32_t> touched_;  // shards that it asks for
  std::vector<Ask> asked_by_;     // in the order of asking
  std::vector<std::pair<int32_t, const Overlap*>> in_order_;
  std::vector<const Overlap*> asked_by_want_;  // of the shard at hand; nullptr: it does not ask
};

ExchangeTraffic traffic_of(const Tally& tally, size_t ranks, int64_t looked) {
  ExchangeTraffic out;
  out.work = static_cast<int64_t>(ranks) + looked;
  const Tally::Most most = tally.most_of_all();
  out.phase[0] = most.traffic;
  out.wire_bytes = out.received[0] = most.received;
  out.sent_bytes = most.sent;
  return out;
}

}  // namespace

std::optional<ListedPhase> list_one_phase(const ExchangeRanks& ranks, const LevelUnits& units,
                                          int64_t element_bytes, bool asks_uneven) {
  OnePhase phase(ranks, units, element_bytes);
  Tally even(ranks.size(), units.levels());
  if (phase.one_holder_each()) {
    const int64_t looked = phase.even(even, false);
    return ListedPhase{traffic_of(even, ranks.size(), looked), std::nullopt,
                       asks_uneven && fetch_unevenly(ranks, units, even)};
  }
  Tally whole(ranks.size(), units.levels());
  const OnePhase::Looked looked = phase.both(even, whole);
  if (phase.too_many_turns()) return std::nullopt;
  return ListedPhase{traffic_of(even, ranks.size(), looked.even),
                     traffic_of(whole, ranks.size(), looked.whole),
                     asks_uneven && fetch_unevenly(ranks, units, even)};
}

int64_t list_inside_units(const ExchangeRanks& ranks, const LevelUnits& units,
                          int64_t element_bytes, Tally& inner) {
  return OnePhase(ranks, units, element_bytes).even(inner, true);
}

}  // namespace meshplan
