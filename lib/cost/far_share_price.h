// Which far share takes least, and what any takes at least (transfer/far_share.h).
//
// The larger the share, the less do links inside units carry, and the more do others: the best is
// where both take equally long, but for what turns and whole slices make of it. Where latencies
// fall outwards, no share is looked for that only has a shorter one.
#pragma once

#include <cstdint>

#include "cost/topology.h"
#include "transfer/list_exchange.h"

namespace meshplan {

// Others that some rank gets something of at least with a far share.
struct FarPeers {
  int64_t near = 0;
  int64_t far = 1;
};

// What a far share takes at least that may take less than the even cut, which moves `even`;
// INT64_MAX: links inside of units do not take longest. The busiest of them carry less where links
// that leave the unit carry the rest, those of all ranks that they serve at most. What one rank
// receives comes over its own.
//
//     hosts of 8, 370 and 45 GB/s, 370 MB from one rank to its 7 neighbours: 1 ms; over
//     370 + 7 x 45 GB/s 0.54 ms, and the latency between hosts
[[nodiscard]] int64_t least_far_share_ps(const Topology& topology, const ExchangeTraffic& even,
                                         const FarPeers& peers = {});

struct FarSharePrice {
  int64_t far_64ths = 0;  // 0: none was listed
  int64_t predicted_ps = INT64_MAX;
  ExchangeTraffic traffic;
};

// By a few listings. `even`: what the even cut moves; nullptr: to be listed. It ends where they
// would hardly take less than below_ps.
[[nodiscard]] FarSharePrice best_far_share(const Topology& topology, const FarShareLister& list,
                                           const ExchangeTraffic* even, int64_t below_ps);

}  // namespace meshplan
