#include "transfer/two_phase_traffic.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/int_math.h"
#include "transfer/fetch_shares.h"
#include "transfer/one_phase_traffic.h"
#include "transfer/passed_on.h"
#include "transfer/tally.h"
#include "transfer/two_phases.h"

namespace meshplan {
namespace {

// What units so far make of both phases.
class ByUnits {
 public:
  ByUnits(const ExchangeRanks& ranks, const LevelUnits& units, int64_t element_bytes,
          Fetchers fetchers)
      : ranks_(ranks),
        units_(units),
        element_bytes_(element_bytes),
        fetchers_(fetchers),
        outer_(ranks.size(), units.levels()),
        inner_(ranks.size(), units.levels()),
        fetched_by_(ranks.size(), 0),
        phases_(ranks, units, fetchers),
        passed_(ranks, phases_.nearest(), inner_) {}

  // The next unit; false at the end.
  bool list_next() {
    if (!phases_.next(unit_)) return false;
    looked_ += std::ssize(unit_.fetched);
    fetch();
    pass_on();
    for (const int32_t m : unit_.members) inner_.raise_to(most_inside_, static_cast<size_t>(m));
    return true;
  }
  // What ranks hold inside of their own units, and pass on, too; of all units.
  void list_inside() {
    looked_ += list_inside_units(ranks_, units_, element_bytes_, inner_);
    inside_is_listed_ = true;
    most_inside_ = inner_.most();
  }
  [[nodiscard]] bool inside_is_listed() const { return inside_is_listed_; }
  [[nodiscard]] const Tally& outer() const { return outer_; }

  [[nodiscard]] ExchangeTraffic phases() const {
    ExchangeTraffic out;
    out.work = static_cast<int64_t>(ranks_.size()) + looked_;
    out.phase = {most_outside_, most_inside_};
    return out;
  }
  [[nodiscard]] ExchangeTraffic traffic() const {
    ExchangeTraffic out = phases();
    for (size_t r = 0; r < ranks_.size(); ++r) {
      raise(out.received[0], outer_.received(r));
      raise(out.received[1], inner_.received(r));
      raise(out.wire_bytes, saturating_add(outer_.received(r), inner_.received(r)));
      raise(out.sent_bytes, saturating_add(outer_.sent(r), inner_.sent(r)));
    }
    return out;
  }

 private:
  void fetch() {
    std::span<const FetchedPart> in_rows = unit_.fetched;  // what a member fetches stands in one
    if (fetchers_ == Fetchers::all_in_laps) {
      sorted_ = unit_.fetched;
      std::stable_sort(sorted_.begin(), sorted_.end(),
                       [](const auto& a, const auto& b) { return a.fetcher < b.fetcher; });
      in_rows = sorted_;
    }
    for (const FetchedPart& f : in_rows) {
      const int64_t bytes = saturating_mul(f.elements, element_bytes_);
      Tally::Cell& in = outer_.at(f.fetcher, f.level);
      Tally::Cell& out_of = outer_.at(f.holder, f.level);
      add_up(in.received, bytes);
      add_up(out_of.sent, bytes);
      int32_t& last = fetched_by_[static_cast<size_t>(f.holder)];
      if (std::exchange(last, f.fetcher + 1) != f.fetcher + 1) {
        ++in.peers_in;
        ++out_of.peers_out;
      }
      const auto l = static_cast<size_t>(f.level);
      raise(most_outside_.bytes[l], std::max(in.received, out_of.sent));
      raise(most_outside_.peers[l], std::max(in.peers_in, out_of.peers_out));
    }
  }
  void pass_on() {
    for (size_t begin = 0; begin < unit_.fetched.size();) {
      const size_t number = unit_.fetched[begin].number;
      size_t end = begin;
      while (end < unit_.fetched.size() && unit_.fetched[end].number == number) ++end;
      passed_.pass(unit_.members_of(number), std::span(unit_.fetched).subspan(begin, end - begin),
                   element_bytes_);
      begin = end;
    }
  }

  const ExchangeRanks& ranks_;
  const LevelUnits& units_;
  const int64_t element_bytes_;
  const Fetchers fetchers_;
  Tally outer_;
  Tally inner_;
  Traffic most_outside_;  // of outer_
  Traffic most_inside_;   // of inner_
  // Peers are counted once however many parts go from one rank to another. By holder: 1 + the last
  // that fetched from it.
  std::vector<int32_t> fetched_by_;
  TwoPhases phases_;
  PassedOn passed_;
  UnitExchange unit_;
  std::vector<FetchedPart> sorted_;
  int64_t looked_ = 0;
  bool inside_is_listed_ = false;
};

}  // namespace

TwoPhaseTraffic list_two_phases(const ExchangeRanks& ranks, const LevelUnits& units,
                                int64_t element_bytes, Fetchers fetchers, bool asks_uneven,
                                const AfterUnits& after) {
  TwoPhaseTraffic listed;
  ByUnits by_units(ranks, units, element_bytes, fetchers);
  const auto is_enough = [&] {
    listed.traffic = by_units.phases();
    return after.is_enough(listed.traffic);
  };
  int64_t next_asked = after.is_enough ? after.first : INT64_MAX;
  for (int64_t so_far = 1; by_units.list_next(); ++so_far) {
    if (so_far < next_asked) continue;
    next_asked = so_far * 2;
    bool ended = is_enough();
    // What is held inside is the same for as many units as come, and often tells nothing.
    if (!ended && !by_units.inside_is_listed()) {
      by_units.list_inside();
      ended = is_enough();
    }
    if (!ended) continue;
    listed.ended_after = so_far;
    return listed;
  }
  if (!by_units.inside_is_listed()) by_units.list_inside();
  listed.uneven = asks_uneven && fetch_unevenly(ranks, units, by_units.outer());
  listed.traffic = by_units.traffic();
  return listed;
}

}  // namespace meshplan
