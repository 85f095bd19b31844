#include "transfer/two_phase_traffic.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/int_math.h"
#include "transfer/fetch_shares.h"
#include "transfer/one_phase_traffic.h"
#include "transfer/tally.h"
#include "transfer/two_phases.h"

namespace meshplan {
namespace {

// What members pass on to those that want one box of the parts of it that they fetched.
//
//     a host of 4 misses [4:8], 1 B an element; its ranks 0 and 1 want it, each fetched a half
//     rank 0 sends its half to rank 1 and receives the other: 2 B each way
//     rank 1 is a peer of rank 0 once, even if it also sends it part of what it held before
//     shared among all, rank 2 fetches a quarter for both and sends it to both
class PassedOn {
 public:
  // `nearest`: asked in the unit at hand.
  PassedOn(const ExchangeRanks& ranks, Nearest& nearest, Tally& inner)
      : ranks_(ranks),
        nearest_(nearest),
        inner_(inner),
        wanting_too_(ranks.size(), 0),
        fetched_(ranks.size(), 0),
        giving_(ranks.shards(), 0),
        sharing_(ranks.shards(), 0) {}

  // `fetched`: the parts of one wanted box; `wanting`: the members of the unit that want it.
  void pass(std::span<const int32_t> wanting, std::span<const FetchedPart> fetched,
            int64_t element_bytes) {
    const int32_t w = fetched.front().wanted;
    wanting_ = wanting;
    for (const int32_t m : wanting) wanting_too_[static_cast<size_t>(m)] = 1;
    const int128 all = send(fetched, element_bytes);
    const int64_t strangers = count_peers_out(w);
    receive(all, strangers);
    forget();
  }

 private:
  // Members that want the box, but for this one.
  [[nodiscard]] int64_t others(int32_t member) const {
    return static_cast<int64_t>(wanting_.size()) - wanting_too_[static_cast<size_t>(member)];
  }

  // Every fetcher sends its parts to the others that want the box. Gives the bytes of all parts.
  int128 send(std::span<const FetchedPart> fetched, int64_t element_bytes) {
    int128 all = 0;
    fetchers_.clear();
    for (const FetchedPart& f : fetched) {
      const int64_t bytes = saturating_mul(f.elements, element_bytes);
      all += bytes;
      add_up(inner_.at(f.fetcher, 0).sent, saturating_mul(bytes, others(f.fetcher)));
      int128& own = fetched_[static_cast<size_t>(f.fetcher)];
      if (own == 0) fetchers_.push_back(f.fetcher);
      own += bytes;
    }
    return all;
  }

  // A rank that sends a member part of what it held before is its peer already: only members that
  // hold the same shard, which get none of it, are new. Gives how many fetchers are new to all:
  // those that send nothing of what they held.
  int64_t count_peers_out(int32_t w) {
    for (const int32_t m : wanting_) {
      if (const int32_t shard = ranks_.shard[static_cast<size_t>(m)]; shard >= 0)
        ++sharing_[static_cast<size_t>(shard)];
    }
    int64_t strangers = 0;
    for (const int32_t f : fetchers_) {
      const int32_t shard = ranks_.shard[static_cast<size_t>(f)];
      if (gives_own(f, w)) {
        ++giving_[static_cast<size_t>(shard)];
        inner_.at(f, 0).peers_out +=
            sharing_[static_cast<size_t>(shard)] - wanting_too_[static_cast<size_t>(f)];
      } else {
        ++strangers;
        inner_.at(f, 0).peers_out += others(f);
      }
    }
    return strangers;
  }

  void receive(int128 all, int64_t strangers) {
    for (const int32_t m : wanting_) {
      const int32_t shard = ranks_.shard[static_cast<size_t>(m)];
      auto& cell = inner_.at(m, 0);
      const int128 own = fetched_[static_cast<size_t>(m)];
      add_up(cell.received, saturated(all - own));
      cell.peers_in +=
          strangers + (shard >= 0 ? giving_[static_cast<size_t>(shard)] : 0) - (own > 0 ? 1 : 0);
    }
  }

  void forget() {
    for (const auto& members : {wanting_, std::span<const int32_t>(fetchers_)}) {
      for (const int32_t m : members) {
        const auto at = static_cast<size_t>(m);
        if (const int32_t shard = ranks_.shard[at]; shard >= 0) {
          sharing_[static_cast<size_t>(shard)] = 0;
          giving_[static_cast<size_t>(shard)] = 0;
        }
        fetched_[at] = 0;
        wanting_too_[at] = 0;
      }
    }
  }

  // Whether the rank sends part of what it holds to those of its unit that want box w and lack it.
  bool gives_own(int32_t rank, int32_t w) {
    const int32_t shard = ranks_.shard[static_cast<size_t>(rank)];
    if (shard < 0) return false;
    const Overlap* overlap = overlap_with(ranks_, w, shard);
    if (overlap == nullptr) return false;
    const NearestHolders& near = nearest_.of(shard, rank);
    const auto holders = ranks_.holders_of(shard).subspan(static_cast<size_t>(near.begin),
                                                          static_cast<size_t>(near.count));
    return std::lower_bound(holders.begin(), holders.end(), rank) - holders.begin() <
           overlap->longest;
  }

  const ExchangeRanks& ranks_;
  Nearest& nearest_;
  Tally& inner_;
  std::vector<int8_t> wanting_too_;  // by rank: 1 where it wants the box at hand
  std::vector<int128> fetched_;      // by rank: bytes of the box at hand
  std::vector<int64_t> giving_;      // by shard: fetchers that hold and give it
  std::vector<int64_t> sharing_;     // by shard: members that want the box and hold it
  std::span<const int32_t> wanting_;
  std::vector<int32_t> fetchers_;
};

}  // namespace

TwoPhaseTraffic list_two_phases(const ExchangeRanks& ranks, const LevelUnits& units,
                                int64_t element_bytes, Fetchers fetchers, bool asks_uneven) {
  TwoPhaseTraffic listed;
  ExchangeTraffic& out = listed.traffic;
  Tally outer(ranks.size(), units.levels());
  Tally inner(ranks.size(), units.levels());
  out.work =
      static_cast<int64_t>(ranks.size()) + list_inside_units(ranks, units, element_bytes, inner);
  // Peers are counted once however many parts go from one rank to another. By holder: 1 + the last
  // that fetched from it.
  std::vector<int32_t> fetched_by(ranks.size(), 0);
  TwoPhases phases(ranks, units, fetchers);
  PassedOn passed(ranks, phases.nearest(), inner);
  UnitExchange unit;
  std::vector<FetchedPart> sorted;
  while (phases.next(unit)) {
    out.work += static_cast<int64_t>(unit.fetched.size());
    std::span<const FetchedPart> in_rows = unit.fetched;  // what a member fetches stands in one
    if (fetchers == Fetchers::all_in_laps) {
      sorted = unit.fetched;
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const auto& a, const auto& b) { return a.fetcher < b.fetcher; });
      in_rows = sorted;
    }
    for (const FetchedPart& f : in_rows) {
      const int64_t bytes = saturating_mul(f.elements, element_bytes);
      Tally::Cell& in = outer.at(f.fetcher, f.level);
      Tally::Cell& out_of = outer.at(f.holder, f.level);
      add_up(in.received, bytes);
      add_up(out_of.sent, bytes);
      if (std::exchange(fetched_by[static_cast<size_t>(f.holder)], f.fetcher + 1) == f.fetcher + 1)
        continue;
      ++in.peers_in;
      ++out_of.peers_out;
    }
    for (size_t begin = 0; begin < unit.fetched.size();) {
      const size_t number = unit.fetched[begin].number;
      size_t end = begin;
      while (end < unit.fetched.size() && unit.fetched[end].number == number) ++end;
      passed.pass(unit.members_of(number), std::span(unit.fetched).subspan(begin, end - begin),
                  element_bytes);
      begin = end;
    }
  }
  listed.uneven = asks_uneven && fetch_unevenly(ranks, units, outer);
  out.phase = {outer.most(), inner.most()};
  for (size_t r = 0; r < ranks.size(); ++r) {
    raise(out.received[0], outer.received(r));
    raise(out.received[1], inner.received(r));
    raise(out.wire_bytes, saturating_add(outer.received(r), inner.received(r)));
    raise(out.sent_bytes, saturating_add(outer.sent(r), inner.sent(r)));
  }
  return listed;
}

}  // namespace meshplan
