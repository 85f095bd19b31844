// The boxes that the members of a unit of the innermost level want, each once: members that want
// one box receive the same but for what they hold themselves.
//
//     2 hosts of 2, 2 x 2, [8], S(0)R -> RR     host 0: members 0 1, one want of 2 members
//     S(0)R -> RS(0)                            host 0: members 0 1, two wants of one member
#pragma once

#include <cstdint>
#include <vector>

#include "transfer/exchange_ranks.h"
#include "transfer/level_units.h"

namespace meshplan {

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

// Calls visit(unit) for every unit, in rank order.
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

// Ranks, and for each unit of the innermost level the shards that the distinct boxes wanted in it
// meet: what one listing looks at.
[[nodiscard]] int64_t overlaps_by_unit(const ExchangeRanks& ranks, const LevelUnits& units);

}  // namespace meshplan
