// Any arrangement of a problem's atoms.
#pragma once

#include <algorithm>
#include <random>

#include "search/spread.h"

namespace meshplan::test {

// Atoms in `pending` stay out of the lists; each other one is in some list or in none.
inline Spread random_spread(const PlanProblem& p, uint16_t pending, std::mt19937_64& random) {
  Spread s;
  s.pending = pending;
  for (int i = 0; i < p.atoms; ++i) {
    const auto d = static_cast<int>(random() % static_cast<uint64_t>(p.dims + 1));
    if ((pending >> i & 1) == 0 && d < p.dims) append(s, p.dims, d, static_cast<uint8_t>(i));
  }
  // A random order inside each list.
  for (int d = 0; d < p.dims; ++d) std::shuffle(s.atom.begin() + s.begin_of(d), s.atom.begin() + s.end_of(d), random);
  return s;
}

}  // namespace meshplan::test
