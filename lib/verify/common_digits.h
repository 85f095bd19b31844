// Two states of one mesh in common digits: those that the levels, the states and the places of the
// tensor all agree on. What the closed forms of exchanges are made of.
//
//   mesh a 2 x b 8 in units of 4, S(0)[1]S(0)[0] -> S(0)S(1)
//     digits a, b0 = b:(1)2 across units, b1 = b:(2)4 inside
//     tensor dim 0, before b0 b1 a, after a: (b0, a) is a crossing, b1 and a below cut before only
#pragma once

#include <optional>
#include <vector>

#include "verify/digits.h"
#include "verify/recount_exchange.h"
#include "verify/units.h"

namespace meshplan::verification {

struct CommonDigits {
  Digits digits;
  DigitState before;
  DigitState after;
  std::vector<size_t> level;  // per digit
};

// nullopt: something does not divide evenly.
[[nodiscard]] std::optional<CommonDigits> common_digits(const ExchangeView& view,
                                                        const Units& units);

// A place of the tensor that both states cut, by different digits: a before, b after.
struct Crossing {
  size_t a = 0;
  size_t b = 0;
};

// What the closed forms are made of.
struct Roles {
  std::vector<Crossing> crossed;
  DigitSet any = 0;     // a rank wants every value: only the source cuts there, or it is reduced
  DigitSet forced = 0;  // what a shard says about those who want it
  DigitSet source = 0;  // what tells shards apart
  int64_t piece = 0;    // bytes
  int64_t longest = 1;  // extent of a piece's longest dim
};

[[nodiscard]] Roles roles_of(const CommonDigits& common, const ExchangeView& view);

// The product of the sizes of the digits in a set.
[[nodiscard]] int64_t product_of(const Digits& digits, DigitSet set);

}  // namespace meshplan::verification
