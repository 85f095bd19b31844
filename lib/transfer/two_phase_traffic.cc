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
