// The traffic of an exchange in one phase with a far share, by listing what every rank gets.
#pragma once

#include <cstdint>

#include "transfer/exchange_ranks.h"
#include "transfer/exchange_traffic.h"
#include "transfer/level_units.h"

namespace meshplan {

[[nodiscard]] ExchangeTraffic list_far_share(const ExchangeRanks& ranks, const LevelUnits& units,
                                             int64_t element_bytes, int64_t far_64ths);

// Ranks, and overlaps with the box that each rank wants: what one such listing looks at.
[[nodiscard]] int64_t overlaps_by_rank(const ExchangeRanks& ranks);

}  // namespace meshplan
