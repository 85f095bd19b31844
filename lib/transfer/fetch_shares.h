// Whether the members of units fetch so unevenly from outside of them that they gain where all
// share it (README.md, "Two phases").
//
//     a host of 4 fetches 8 B, its rank 0 alone: 8 B, where 2 each would do
//     another fetches 32 B, its ranks 8 each: nothing is gained by rank 0's neighbours helping it
#pragma once

#include "transfer/exchange_ranks.h"
#include "transfer/level_units.h"
#include "transfer/tally.h"

namespace meshplan {

// By what ranks receive over links outside of units of the innermost level: whether some rank gets
// more than a sixteenth above what every member of the unit that gets most would, were it shared.
// Members are those on the target's side.
[[nodiscard]] bool fetch_unevenly(const ExchangeRanks& ranks, const LevelUnits& units,
                                  const Tally& tally);

}  // namespace meshplan
