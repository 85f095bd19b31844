// The traffic of the fullest chunk of two phases in shifts (README.md, "In shifts"), by listing.
#pragma once

#include <cstdint>
#include <vector>

#include "transfer/exchange_cut.h"
#include "transfer/exchange_traffic.h"
#include "transfer/passed_on.h"
#include "transfer/shifts.h"
#include "transfer/tally.h"
#include "transfer/two_phases.h"

namespace meshplan {

// One exchange across meshes. The ranks outlive it.
class ShiftTraffic {
 public:
  ShiftTraffic(const ExchangeRanks& ranks, const LevelUnits& units, int64_t element_bytes,
               Fetchers fetchers);
  // False: parts change places more often than `most_priced`, and nothing else may be asked.
  [[nodiscard]] bool known() const { return known_; }
  static constexpr int64_t most_priced = int64_t{1} << 22;
  // How many shifts it takes: d.
  [[nodiscard]] int64_t shifts() const { return shifts_.count; }
  // Of chunks from so many at once: both phases as if every stage were the fullest, so that one of
  // k chunks takes 1/k of their bytes and all of their peers.
  [[nodiscard]] std::array<Traffic, 2> fullest(int64_t at_once) const;
  // What one call of `fullest` takes, as so many shards listed (ListingMemory::looked).
  [[nodiscard]] int64_t work() const;

 private:
  // Calls visit(stage, parts of it) for the parts of one unit; it may sort them.
  template <class Visitor>
  void by_stage(size_t unit, int64_t at_once, Visitor&& visit) const;
  // Of one stage of so many, of all units; sorts its parts.
  [[nodiscard]] Traffic fetched(std::vector<FetchedPart>& parts, int64_t stages) const;
  // Of one stage and unit; sorts its parts.
  void pass_on(const UnitExchange& unit, std::vector<FetchedPart>& parts, int64_t stages,
               PassedOn& passed) const;

  const ExchangeRanks& ranks_;
  LevelUnits level_units_;
  int64_t element_bytes_;
  std::vector<UnitExchange> units_;
  std::vector<size_t> first_;  // part of each unit among those of all
  Shifts shifts_;
  bool known_ = true;
  Tally own_;  // what comes from sources inside units
};

}  // namespace meshplan
