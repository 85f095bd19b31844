// From how many ranks at once chunks come with the least time (transfer/README.md, "In shifts").
//
// Every peer takes time in every chunk that comes from it: by 12 peers a chunk that is fetched in
// 1.9 ms waits 0.17 ms for them. In shifts it has one or two, and only those that hold it.
#pragma once

#include <cstdint>
#include <optional>

#include "cost/topology.h"
#include "transfer/exchange_traffic.h"

namespace meshplan {

class ShiftTraffic;  // transfer/shift_traffic.h

// The most that are tried: each more takes as long again, and two fill the links.
constexpr int64_t most_at_once_tried = 4;

struct ShiftPrice {
  int64_t at_once = 0;  // 0: none takes so few chunks as are allowed
  int64_t chunks = 1;
  int64_t predicted_ps = INT64_MAX;
  ExchangeTraffic traffic;
};

// `whole`: the traffic of both phases, from all at once. The fewest at once on a tie.
[[nodiscard]] ShiftPrice best_in_shifts(const Topology& topology, const ExchangeTraffic& whole,
                                        const ShiftTraffic& shifts);
// From so many, in so many chunks; nullopt: the stages do not divide them.
[[nodiscard]] std::optional<ShiftPrice> price_in_shifts(const Topology& topology,
                                                        const ExchangeTraffic& whole,
                                                        const ShiftTraffic& shifts, int64_t at_once,
                                                        int64_t chunks);
// What shifts take at least, from any number at once that is tried: where a rank has p peers, a
// quarter of p are stages at least, each of a chunk or more; every chunk has one of the peers, and
// all chunks together have all. INT64_MAX: there are never so many chunks.
[[nodiscard]] int64_t least_in_shifts_ps(const Topology& topology, const ExchangeTraffic& whole);

}  // namespace meshplan
