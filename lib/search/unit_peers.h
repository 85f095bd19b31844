// Whom members of a unit fetch from and send to at least, outside of it, in one exchange: floors of
// exchanges pay for peers (search/unit_needs.h).
//
//     hosts of 8, 64 ranks, S(0) -> S(1)      a member meets 64 shards, 56 of them outside: as many
//                                             peers in one phase; 7 where members share them
#pragma once

#include <cstdint>

#include "search/unit_needs.h"

namespace meshplan {

// The most that one member fetches from at least, as far as that is known soon.
[[nodiscard]] int64_t shards_outside(const PlanProblem& p, const UnitRanks& unit,
                                     const UnitPair& pair, UnitNeed& need, ExchangeWay way);

// The most peers that one member has, counted box by box; in one phase if pieces go whole and if
// each is cut over all its holders.
struct PeersOutside {
  int64_t whole = 0;
  int64_t parts = 0;
};
[[nodiscard]] PeersOutside peers_outside(const PlanProblem& p, const UnitRanks& unit,
                                         const UnitNeed& need, const UnitPair& pair,
                                         ExchangeWay way);

// What one member sends out at least in two phases, and to how many: every unit fetches once what
// its members want, and none of them fetches more than the box that it wants, or, where all fetch,
// than its share of what the unit misses.
struct SentOut {
  int64_t elements = 0;
  int64_t peers = 0;
};
[[nodiscard]] SentOut sent_out(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                               const UnitPair& pair, ExchangeWay way);

// Fetched by all, the elements of boxes of `to` that one rank fetches at most: a slice and a 128th
// above an even share (transfer/two_phases.h).
[[nodiscard]] int64_t longest_stretch(const PlanProblem& p, const SearchState& to, int64_t even);

}  // namespace meshplan
