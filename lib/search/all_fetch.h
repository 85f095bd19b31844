// Exchanges that all ranks of units fetch (lib/transfer/README.md), where the digits of both states
// line up (transfer/digits.h) and nothing is pending: all units miss as much then, and products
// over digits say whether members miss unevenly, and what the exchange takes at least.
//
//     2 hosts of 4, mesh a 2 x b 4, [8], S(0)[a b] -> S(0)[b]
//     digits a (across hosts), b:(1)2 and b:(2)2; position 0 is crossed: a before, b:(1)2 after
//     host 0 holds [0:4]; ranks 0 and 1 want [0:2] and [2:4], ranks 2 and 3 [4:6] and [6:8]
//     fetched by those that want it     ranks 2 and 3 two elements each
//     fetched by all                    ranks 0 to 3 one element each
//
// Where no digit across units is crossed by one inside, members that want different boxes miss as
// much of each; where one is crossed by another across units, members of some unit miss all of
// their boxes. In neither is there more to share among all than among those that want a box.
#pragma once

#include <cstdint>

#include "transfer/digits.h"

namespace meshplan {

struct PlanProblem;

[[nodiscard]] bool members_miss_unevenly(const DigitWorld& world, const DigitChange& change);

// What it takes at least, ps; INT64_MAX where members miss evenly. `change`: of two states of the
// problem, with `longest` set.
// Law: never above price_between.
[[nodiscard]] int64_t all_fetch_floor_ps(const PlanProblem& p, const DigitChange& change);

}  // namespace meshplan
