#include "transfer/shift_traffic.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/int_math.h"
#include "transfer/one_phase_traffic.h"

namespace meshplan {

ShiftTraffic::ShiftTraffic(const ExchangeRanks& ranks, const LevelUnits& units,
                           int64_t element_bytes, Fetchers fetchers)
    : ranks_(ranks),
      level_units_(units),
      element_bytes_(element_bytes),
      own_(ranks.size(), units.levels()) {
  list_inside_units(ranks, units, element_bytes, own_);
  TwoPhases phases(ranks, units, fetchers);
  std::vector<Fetch> parts;
  for (UnitExchange unit; phases.next(unit);) {
    if (unit.fetched.empty()) continue;
    first_.push_back(parts.size());
    for (const FetchedPart& f : unit.fetched) parts.push_back({f.fetcher, f.holder});
    units_.push_back(unit);
  }
  auto shifts = put_in_shifts(parts, most_priced);
  known_ = shifts.has_value();
  if (known_) shifts_ = *std::move(shifts);
}

int64_t ShiftTraffic::work() const {
  constexpr int64_t sorted = 4;  // and passed on stage by stage: as long as so many listed
  return sorted * static_cast<int64_t>(2 * shifts_.of.size() + ranks_.size());
}

template <class Visitor>
void ShiftTraffic::by_stage(size_t unit, int64_t at_once, Visitor&& visit) const {
  const std::vector<FetchedPart>& parts = units_[unit].fetched;
  const auto stage_of_part = [&](size_t i) {
    return static_cast<size_t>(stage_of(shifts_.of[first_[unit] + i], shifts_.count, at_once));
  };
  // Where those of each stage end among all in this order.
  std::vector<size_t> ends(static_cast<size_t>(stages_of(shifts_.count, at_once)), 0);
  for (size_t i = 0; i < parts.size(); ++i) ++ends[stage_of_part(i)];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<size_t> order(parts.size());
  for (size_t i = parts.size(); i-- > 0;) order[--ends[stage_of_part(i)]] = i;
  // They begin there now.
  std::vector<FetchedPart> of_stage;
  for (size_t stage = 0; stage < ends.size(); ++stage) {
    const size_t end = stage + 1 < ends.size() ? ends[stage + 1] : order.size();
    if (ends[stage] == end) continue;
    of_stage.clear();
    for (size_t k = ends[stage]; k < end; ++k) of_stage.push_back(parts[order[k]]);
    visit(static_cast<int64_t>(stage), of_stage);
  }
}

Traffic ShiftTraffic::fetched(std::vector<FetchedPart>& parts, int64_t stages) const {
  std::sort(parts.begin(), parts.end(), [](const FetchedPart& a, const FetchedPart& b) {
    return std::pair(a.fetcher, a.holder) < std::pair(b.fetcher, b.holder);
  });
  Tally outer(ranks_.size(), level_units_.levels());
  for (size_t i = 0; i < parts.size(); ++i) {
    const FetchedPart& f = parts[i];
    const int64_t bytes = saturating_mul(saturating_mul(f.elements, element_bytes_), stages);
    Tally::Cell& in = outer.at(f.fetcher, f.level);
    Tally::Cell& out = outer.at(f.holder, f.level);
    add_up(in.received, bytes);
    add_up(out.sent, bytes);
    if (i > 0 && parts[i - 1].fetcher == f.fetcher && parts[i - 1].holder == f.holder) continue;
    ++in.peers_in;
    ++out.peers_out;
  }
  return outer.most();
}

void ShiftTraffic::pass_on(const UnitExchange& unit, std::vector<FetchedPart>& parts,
                           int64_t stages, PassedOn& passed) const {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const FetchedPart& a, const FetchedPart& b) { return a.number < b.number; });
  for (size_t begin = 0; begin < parts.size();) {
    size_t end = begin;
    while (end < parts.size() && parts[end].number == parts[begin].number) ++end;
    passed.pass(unit.members_of(parts[begin].number),
                std::span<const FetchedPart>(parts).subspan(begin, end - begin),
                saturating_mul(element_bytes_, stages));
    begin = end;
  }
}

std::array<Traffic, 2> ShiftTraffic::fullest(int64_t at_once) const {
  const int64_t stages = stages_of(shifts_.count, at_once);
  std::vector<std::vector<FetchedPart>> parts_of(static_cast<size_t>(stages));
  Traffic shared = own_.most();
  Tally inner = own_;
  Nearest nearest(ranks_, level_units_);
  PassedOn passed(ranks_, nearest, inner);
  // What is passed on stays in its unit.
  for (size_t u = 0; u < units_.size(); ++u) {
    by_stage(u, at_once, [&](int64_t stage, std::vector<FetchedPart>& parts) {
      auto& all = parts_of[static_cast<size_t>(stage)];
      all.insert(all.end(), parts.begin(), parts.end());
      pass_on(units_[u], parts, stages, passed);
      for (const int32_t m : units_[u].members) {
        Tally::Cell& cell = inner.at(m, 0);
        raise(shared.bytes[0], std::max(cell.received, cell.sent));
        raise(shared.peers[0], std::max(cell.peers_in, cell.peers_out));
        cell = own_.at(m, 0);
      }
    });
  }
  Traffic fetching;
  for (std::vector<FetchedPart>& parts : parts_of) raise_traffic(fetching, fetched(parts, stages));
  return {fetching, shared};
}

}  // namespace meshplan
