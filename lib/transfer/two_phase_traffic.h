// The traffic of an exchange in two phases, by listing what units fetch and what their members pass
// on. Sums saturate.
#pragma once

#include "transfer/exchange_cut.h"
#include "transfer/exchange_ranks.h"
#include "transfer/exchange_traffic.h"
#include "transfer/level_units.h"

namespace meshplan {

struct TwoPhaseTraffic {
  ExchangeTraffic traffic;
  bool uneven = false;  // fetch_unevenly, where that is asked
};
[[nodiscard]] TwoPhaseTraffic list_two_phases(const ExchangeRanks& ranks, const LevelUnits& units,
                                              int64_t element_bytes, Fetchers fetchers,
                                              bool asks_uneven);

}  // namespace meshplan
