// Exchanges in closed form: counts of ranks and pieces as products over digits.
//
//     hosts of 4, mesh a 2 x b 4, 8 elements of 4 B, S(0)[b] -> R, even cut
//     digits a (across hosts) and b (inside); a rank wants all 4 shards of 2 elements, holds one
//     received inside a host     4 - 1 = 3 shards, each from its one holder in the host: 24 B
//     received across hosts      none: every shard has a holder in the host
//
//     S(0)[a] -> R: 2 shards of 4 elements, each with 4 holders in one host
//     received across hosts      2 - 1 = 1 shard, a quarter from each of 4 holders: 16 B, 4 peers
//
// Law: equal to the listing of every piece (tests/transfer/exchange_digits_test.cc).
#pragma once

#include <optional>

#include "transfer/digits.h"
#include "transfer/exchange_cut.h"
#include "transfer/exchange_traffic.h"
#include "transfer/turns.h"

namespace meshplan {

// One phase, as list_one_phase has it, or at most that (ExchangeTraffic::exact).
[[nodiscard]] ExchangeTraffic digits_one_phase(const DigitWorld& world, const DigitChange& change,
                                               int levels, ExchangeCut cut);
// Whole pieces, as list_one_phase has it; `turns`: those of this change.
[[nodiscard]] ExchangeTraffic digits_whole_pieces(const DigitWorld& world,
                                                  const DigitChange& change, int levels,
                                                  const MostTurns& turns);

// Whether some shard has several holders: only then do the cuts differ.
[[nodiscard]] inline bool has_several_holders(const DigitWorld& world, const DigitChange& change) {
  return world.product(world.all() & ~(change.src | change.reduced | change.kept)) > 1;
}

// Whether some shard has holders in several units of the innermost level.
[[nodiscard]] inline bool has_far_holders(const DigitWorld& world, const DigitChange& change) {
  return (world.all() & ~world.at_level(0) & ~(change.src | change.reduced | change.kept)) != 0;
}

// Two phases in so many laps, fetched by those that want it, as list_two_phases has it; sent_bytes
// is near only where members of a unit fetch different amounts; nullopt where units or wanted boxes
// differ in what they miss, a member fetches two parts from one holder, or more than one level lies
// outside of units: then pieces are listed.
[[nodiscard]] std::optional<ExchangeTraffic> digits_two_phases(const DigitWorld& world,
                                                               const DigitChange& change,
                                                               int levels, int64_t laps = 1);

}  // namespace meshplan
