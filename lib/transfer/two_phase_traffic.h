// The traffic of an exchange in two phases, by listing what units fetch and what their members pass
// on. Sums saturate.
#pragma once

#include <functional>

#include "transfer/exchange_cut.h"
#include "transfer/exchange_ranks.h"
#include "transfer/exchange_traffic.h"
#include "transfer/level_units.h"

namespace meshplan {

struct TwoPhaseTraffic {
  ExchangeTraffic traffic;
  bool uneven = false;      // fetch_unevenly, where that is asked
  int64_t ended_after = 0;  // so many units: what those make of the phases; 0: all were listed
};

// When a listing of two phases asks whether it is enough: with what the first units make of it,
// then with twice as many. More units never make it less.
struct AfterUnits {
  std::function<bool(const ExchangeTraffic&)> is_enough{};  // empty: it never ends early
  int64_t first = 1;                                        // asked after so many units
};

[[nodiscard]] TwoPhaseTraffic list_two_phases(const ExchangeRanks& ranks, const LevelUnits& units,
                                              int64_t element_bytes, Fetchers fetchers,
                                              bool asks_uneven, const AfterUnits& after = {});

}  // namespace meshplan
