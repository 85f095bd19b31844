#include "cost/unit_counts.h"

namespace meshplan {

UnitCounts counts_of(const LevelUnits& units, const std::vector<int64_t>& ids) {
  UnitCounts counts;
  for (const int64_t id : ids) {
    for (int l = 0; l < units.levels(); ++l) ++counts[{l, units.unit(id, l)}];
  }
  return counts;
}

bool meets(const LevelUnits& units, int64_t id, const UnitCounts& others, const UnitCounts& but,
           int level) {
  const auto count = [&](int l) {
    if (l < 0) return int64_t{0};
    const auto of = [&](const UnitCounts& counts) {
      const auto found = counts.find({l, units.unit(id, l)});
      return found == counts.end() ? 0 : found->second;
    };
    return of(others) - of(but);
  };
  return count(level) > count(level - 1);
}

}  // namespace meshplan
