// The least memory that any plan across meshes (across.h) takes at its peak.
//
//     to S, the source's mesh    12 B at its peak
//     S to L, one exchange       20 B, of the ways that it may go the one that needs least
//     L to the target             8 B: 20 B in all, and the least of that over all S and L
#pragma once

#include "search/across_exchange.h"
#include "search/across_side.h"
#include "search/search.h"

namespace meshplan {

struct AcrossLeastPeak {
  LeastPeak least;  // without edges
  // Of the plan that has it: the states between which it crosses with their ways, and the exchange.
  Stop source;
  Step crossing;
  Stop landing;
};
// Both sides fit. Where the work does not suffice, of those that were looked at: one is.
[[nodiscard]] AcrossLeastPeak least_peak_across(const Side& sources, const Side& landings,
                                                AcrossExchange& exchange, const ExchangeWays& ways,
                                                work::Budget& budget);

}  // namespace meshplan
