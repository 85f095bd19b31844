// One exchange from a state to another as a step of the search.
//
//     8 x 4 x 2 on hosts of 8, RS(0)S(1) -> RS(1)S(0)     from all holders, 21/64 from far ones
//     within a limit that only the plain exchange keeps   from the nearest holders
#pragma once

#include "search/exchange_way.h"
#include "search/search.h"

namespace meshplan {

// Group, reduced and phases are set. A cost above `most_ps` may be told too low, but not as low as
// that. In laps or with a far share only where the peak limit allows.
[[nodiscard]] Edge exchange_edge(const PlanProblem& p, const SearchState& from,
                                 const SearchState& to, ExchangeWay way,
                                 int64_t most_ps = INT64_MAX);

}  // namespace meshplan
