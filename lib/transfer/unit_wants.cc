#include "transfer/unit_wants.h"

namespace meshplan {

int64_t overlaps_by_unit(const ExchangeRanks& ranks, const LevelUnits& units) {
  auto all = static_cast<int64_t>(ranks.size());
  std::vector<int32_t> seen(ranks.wants(), -1);  // by wanted box: the last unit that wants it
  int32_t unit = 0;
  for (size_t begin = 0; begin < ranks.size(); ++unit) {
    const size_t end = units.end_of_unit(ranks.id, begin);
    for (; begin < end; ++begin) {
      const int32_t w = ranks.wanted[begin];
      if (w < 0 || std::exchange(seen[static_cast<size_t>(w)], unit) == unit) continue;
      all += static_cast<int64_t>(ranks.overlaps_of(w).size());
    }
  }
  return all;
}

}  // namespace meshplan
