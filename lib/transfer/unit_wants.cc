#include "transfer/unit_wants.h"

namespace meshplan {

int64_t overlaps_by_unit(const ExchangeRanks& ranks, const LevelUnits& units) {
  int64_t all = static_cast<int64_t>(ranks.size());
  for_each_unit(ranks, units, [&](const UnitWants& unit) {
    for (const UnitWants::Want& want : unit.wants)
      all += static_cast<int64_t>(ranks.overlaps_of(want.wanted).size());
  });
  return all;
}

}  // namespace meshplan
