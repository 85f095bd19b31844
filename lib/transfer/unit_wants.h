// The boxes that the members of a unit of the innermost level want, each once: members that want
// one box receive the same but for what they hold themselves.
//
//     2 hosts of 2, 2 x 2, [8], S(0)R -> RR     host 0: members 0 1, one want of 2 members
//     S(0)R -> RS(0)                            host 0: members 0 1, two wants of one member
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "transfer/exchange_ranks.h"
#include "transfer/level_units.h"

namespace meshplan {

struct UnitWants {
  struct Want {
    int32_t wanted = 0;
    int32_t first = 0;  // among the unit's members
    int32_t count = 0;  // of members
  };
  size_t begin = 0;  // its ranks, as rank indices
  size_t end = 0;
  std::vector<Want> wants;       // in the order of the first member
  std::vector<int32_t> members;  // ranks that want the first box, ascending, those of the next, ...

  [[nodiscard]] std::span<const int32_t> members_of(const Want& want) const {
    return std::span(members).subspan(static_cast<size_t>(want.first),
                                      static_cast<size_t>(want.count));
  }
};

// Calls visit(unit) for every unit, in rank order.
template <class Visitor>
void for_each_unit(const ExchangeRanks& ranks, const LevelUnits& units, Visitor&& visit) {
  UnitWants unit;
  std::vector<int32_t> number(ranks.wants(), -1);  // by wanted box: which of the unit's
  while (unit.end < ranks.size()) {
    unit.begin = unit.end;
    unit.end = units.end_of_unit(ranks.id, unit.begin);
    unit.wants.clear();
    for (size_t r = unit.begin; r < unit.end; ++r) {
      const int32_t w = ranks.wanted[r];
      if (w < 0) continue;
      int32_t& n = number[static_cast<size_t>(w)];
      if (n < 0) {
        n = static_cast<int32_t>(unit.wants.size());
        unit.wants.push_back({w, 0, 0});
      }
      ++unit.wants[static_cast<size_t>(n)].count;
    }
    int32_t first = 0;
    for (UnitWants::Want& want : unit.wants) {
      want.first = first;
      first += std::exchange(want.count, 0);
    }
    unit.members.resize(static_cast<size_t>(first));
    for (size_t r = unit.begin; r < unit.end; ++r) {
      const int32_t w = ranks.wanted[r];
      if (w < 0) continue;
      UnitWants::Want& want = unit.wants[static_cast<size_t>(number[static_cast<size_t>(w)])];
      unit.members[static_cast<size_t>(want.first + want.count++)] = static_cast<int32_t>(r);
    }
    for (const UnitWants::Want& want : unit.wants) number[static_cast<size_t>(want.wanted)] = -1;
    visit(unit);
  }
}

// Ranks, and for each unit of the innermost level the shards that the distinct boxes wanted in it
// meet: what one listing looks at.
[[nodiscard]] int64_t overlaps_by_unit(const ExchangeRanks& ranks, const LevelUnits& units);

}  // namespace meshplan
