#include "transfer/exchange_traffic.h"

#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "transfer/tally.h"

namespace meshplan {
namespace {

// What holders send, by stretches of a shard's holders that send alike: differences, which are
// summed up at the end. They are wide, as differences of sums that are held at a most are none.
class Senders {
 public:
  Senders(const ExchangeRanks& ranks, int levels)
      : ranks_(ranks),
        levels_(static_cast<size_t>(levels)),
        sent_(levels_ * (ranks.holders.size() + 1)) {}

  // The i-th nearest holders, i from `begin` up to `end`, send this to `times` ranks each.
  void send(int32_t shard, const NearestHolders& near, int64_t begin, int64_t end, int64_t bytes,
            int64_t times) {
    if (begin >= end) return;
    const int64_t first = ranks_.holders_begin[static_cast<size_t>(shard)] + near.begin;
    change(first + begin, near.level, int128{bytes} * times, times);
    change(first + end, near.level, -int128{bytes} * times, -times);
  }
  // Parts of an even cut, each to `times` ranks.
  void send_parts(const Overlap& overlap, const NearestHolders& near, int64_t element_bytes,
                  int64_t times) {
    if (near.count == 1)
      return send(overlap.shard, near, 0, 1, bytes_of(overlap, element_bytes), times);
    const int64_t slice = floor_div(overlap.elements, overlap.longest);
    const int64_t each = floor_div(overlap.longest, near.count);
    const int64_t longer = overlap.longest - each * near.count;
    send(overlap.shard, near, 0, longer, saturating_mul(slice * (each + 1), element_bytes), times);
    if (each > 0)
      send(overlap.shard, near, longer, near.count, saturating_mul(slice * each, element_bytes),
           times);
  }
  // Whole pieces for `times` ranks in a row, of which the first asks holder number `turn`.
  void send_whole(int32_t shard, const NearestHolders& near, int64_t bytes, int64_t turn,
                  int64_t times) {
    if (near.count == 1) return send(shard, near, 0, 1, bytes, times);
    const int64_t rounds = floor_div(times, near.count);
    if (rounds > 0) send(shard, near, 0, near.count, bytes, rounds);
    const int64_t begin = turn - floor_div(turn, near.count) * near.count;
    const int64_t end = begin + times - rounds * near.count;
    send(shard, near, begin, std::min<int64_t>(end, near.count), bytes, 1);
    send(shard, near, 0, end - near.count, bytes, 1);
  }

  void settle(Tally& tally) const {
    std::vector<Sent> now(levels_);
    for (size_t place = 0; place < ranks_.holders.size(); ++place) {
      for (size_t l = 0; l < levels_; ++l) {
        const Sent& more = sent_[place * levels_ + l];
        now[l].bytes += more.bytes;
        now[l].peers += more.peers;
        if (now[l].peers == 0) continue;
        auto& cell = tally.at(ranks_.holders[place], static_cast<int>(l));
        add_up(cell.sent, saturated(now[l].bytes));
        cell.peers_out += now[l].peers;
      }
    }
  }

 private:
  struct Sent {
    int128 bytes = 0;
    int64_t peers = 0;
  };
  void change(int64_t place, int level, int128 bytes, int64_t peers) {
    Sent& at = sent_[static_cast<size_t>(place) * levels_ + static_cast<size_t>(level)];
    at.bytes += bytes;
    at.peers += peers;
  }
  const ExchangeRanks& ranks_;
  size_t levels_;
  std::vector<Sent> sent_;  // place-major
};

// The members of one unit of the innermost level, by what they want.
struct UnitWants {
  struct Want {
    int32_t wanted = 0;
    int64_t members = 0;
  };
  size_t begin = 0;  // members, as rank indices
  size_t end = 0;
  std::vector<Want> wants;         // in the order of the first member
  std::vector<int32_t> of_member;  // which of `wants`; -1: none
};

// Visits the units in rank order.
template <class Visitor>
void for_each_unit(const ExchangeRanks& ranks, const LevelUnits& units, Visitor&& visit) {
  UnitWants unit;
  std::vector<int32_t> number(ranks.wants(), -1);
  while (unit.end < ranks.size()) {
    unit.begin = unit.end;
    unit.wants.clear();
    unit.of_member.clear();
    const int64_t here = units.unit(ranks.id[unit.begin], 0);
    for (; unit.end < ranks.size() && units.unit(ranks.id[unit.end], 0) == here; ++unit.end) {
      const int32_t w = ranks.wanted[unit.end];
      if (w >= 0) {
        int32_t& n = number[static_cast<size_t>(w)];
        if (n < 0) {
          n = static_cast<int32_t>(unit.wants.size());
          unit.wants.push_back({w, 0});
        }
        ++unit.wants[static_cast<size_t>(n)].members;
        unit.of_member.push_back(n);
      } else {
        unit.of_member.push_back(-1);
      }
    }
    for (const UnitWants::Want& want : unit.wants) number[static_cast<size_t>(want.wanted)] = -1;
    visit(unit);
  }
}

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
      : tally(of), senders(ranks, units.levels()), received(units.levels()) {}
  Tally& tally;
  Senders senders;
  Received received;
  int64_t looked = 0;  // at overlaps
};

// All ranks of a unit have the same nearest holders, so what a member receives is what its wanted
// box takes less what it holds of it.
class OnePhase {
 public:
  OnePhase(const ExchangeRanks& ranks, const LevelUnits& units, int64_t element_bytes)
      : ranks_(ranks),
        units_(units),
        element_(element_bytes),
        nearest_(ranks, units),
        owners_(ranks.overlaps.size(), 0) {}

  // Pieces cut over their nearest holders. Gives how many overlaps were looked at.
  int64_t even(Tally& tally) { return list(tally, nullptr, false).even; }
  // Only what comes from inside units.
  int64_t even_inside(Tally& tally) { return list(tally, nullptr, true).even; }
  // The same and whole pieces.
  struct Looked {
    int64_t even = 0;
    int64_t whole = 0;
  };
  Looked both(Tally& even, Tally& whole) { return list(even, &whole, false); }

 private:
  struct Asks {
    int64_t elements = 0;
    int64_t times = 0;
    bool alike = true;  // all for as many elements
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
          if (missing > 0) even.senders.send_parts(overlap, near, element_, missing);
          if (!whole) continue;
          ++whole->looked;
          whole->received.add(i, near.level, bytes, 1);
          ask(overlap, missing);
        }
      }
      settle(unit, even, true);
      if (!whole) return;
      for (const int32_t shard : touched_) serve(unit, shard, *whole);
      touched_.clear();
      settle(unit, *whole, false);
    });
    even.senders.settle(even.tally);
    if (whole) whole->senders.settle(whole->tally);
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
  int64_t take_owners(const Overlap& overlap) {
    return std::exchange(owners_[static_cast<size_t>(&overlap - ranks_.overlaps.data())], 0);
  }

  // `parts`: pieces are cut over the nearest holders.
  void settle(const UnitWants& unit, ListedCut& cut, bool parts) {
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
  void ask(const Overlap& overlap, int64_t members) {
    if (members == 0) return;
    Asks& asks = asks_[static_cast<size_t>(overlap.shard)];
    if (asks.times == 0) touched_.push_back(overlap.shard);
    asks.alike = asks.times == 0 || (asks.alike && asks.elements == overlap.elements);
    asks.elements = overlap.elements;
    asks.times += members;
  }
  // The unit's members that miss part of the shard ask for it in rank order.
  void serve(const UnitWants& unit, int32_t shard, ListedCut& whole) {
    Asks& asks = asks_[static_cast<size_t>(shard)];
    int64_t& asked = asked_[static_cast<size_t>(shard)];
    const NearestHolders& near = nearest_.of(shard, static_cast<int32_t>(unit.begin));
    if (asks.alike) {
      const int64_t bytes = saturating_mul(asks.elements, element_);
      whole.senders.send_whole(shard, near, bytes, asked, asks.times);
      asked += asks.times;
    } else {
      for (size_t m = unit.begin; m < unit.end; ++m) {
        if (ranks_.wanted[m] < 0 || ranks_.shard[m] == shard) continue;
        ++whole.looked;
        if (const Overlap* overlap = overlap_with(ranks_, ranks_.wanted[m], shard))
          whole.senders.send_whole(shard, near, bytes_of(*overlap, element_), asked++, 1);
      }
    }
    asks = {};
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
};

}  // namespace

void join_traffic(ExchangeTraffic& all, const ExchangeTraffic& more) {
  for (size_t p = 0; p < all.phase.size(); ++p) {
    for (size_t l = 0; l < max_levels; ++l) {
      raise(all.phase[p].bytes[l], more.phase[p].bytes[l]);
      raise(all.phase[p].peers[l], more.phase[p].peers[l]);
    }
    raise(all.received[p], more.received[p]);
  }
  raise(all.wire_bytes, more.wire_bytes);
  raise(all.sent_bytes, more.sent_bytes);
  add_up(all.work, more.work);
}

int64_t overlaps_by_unit(const ExchangeRanks& ranks, const LevelUnits& units) {
  int64_t all = static_cast<int64_t>(ranks.size());
  for_each_unit(ranks, units, [&](const UnitWants& unit) {
    for (const UnitWants::Want& want : unit.wants)
      all += static_cast<int64_t>(ranks.overlaps_of(want.wanted).size());
  });
  return all;
}

namespace {

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
                           int64_t element_bytes) {
  const bool several_holders = ranks.holders.size() != ranks.shards();
  OnePhase phase(ranks, units, element_bytes);
  Tally even(ranks.size(), units.levels());
  if (!several_holders) {
    const int64_t looked = phase.even(even);
    return {traffic_of(even, ranks.size(), looked), std::nullopt};
  }
  Tally whole(ranks.size(), units.levels());
  const OnePhase::Looked looked = phase.both(even, whole);
  return {traffic_of(even, ranks.size(), looked.even),
          traffic_of(whole, ranks.size(), looked.whole)};
}

int64_t list_inside_units(const ExchangeRanks& ranks, const LevelUnits& units,
                          int64_t element_bytes, Tally& inner) {
  return OnePhase(ranks, units, element_bytes).even_inside(inner);
}

}  // namespace meshplan
