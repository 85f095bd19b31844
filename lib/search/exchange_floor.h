// What one exchange takes at least, where closed forms do not say what it takes: it refuses most
// exchanges before their ranks are listed.
//
//     64 ranks, [16, 8192], S(0) -> S(1): a rank receives 16 x 128 elements at most
//     ranks 0 to 15 have a row each, and send 63 parts of 128 elements: nearly four times that
//
// Counted are what a few ranks receive and from how many others, what holders of the largest shard
// send, and what enters a few units (unit_needs.h). What holders send beyond their units is what
// ranks there want of the shard, less what those want that lie in the few units that hold it:
//
//     [1, 8192, 1600], S(0) -> S(2) on 16 hosts of 8: the first host has all, and sends 15 of 16
//     parts over its own links, each once in two phases
#pragma once

#include <array>
#include <cstdint>

#include "search/exchange_way.h"
#include "search/rank_sides.h"
#include "search/search_state_bytes.h"

namespace meshplan {

struct PlanProblem;

// In ps; above `enough_ps` it may be more. 0 under finer tiers and where contributions are made.
// Law: never above price_between.
[[nodiscard]] int64_t exchange_floor_ps(const PlanProblem& p, const SearchState& from,
                                        const SearchState& to, ExchangeWay way,
                                        int64_t enough_ps = INT64_MAX);

// Of every way, by ExchangeWay; INT64_MAX of one that may not go or is not offered. The least of
// them is that of exchange_floor_ps; of ways that take no less by boxes and peers alone no units
// are asked. Law: none is above exchange_floor_ps of its way.
using WayFloors = std::array<int64_t, exchange_ways.size()>;
[[nodiscard]] WayFloors exchange_floors_ps(const PlanProblem& p, const SearchState& from,
                                           const SearchState& to, int64_t enough_ps = INT64_MAX);

// The same by more than exchange_floor_ps counts, which takes longer (unit_needs.h); 0 where no
// units are looked at.
[[nodiscard]] int64_t close_exchange_floor_ps(const PlanProblem& p, const SearchState& from,
                                              const SearchState& to, ExchangeWay way,
                                              int64_t enough_ps = INT64_MAX);

// Of the way that takes least.
struct AnyWayFloor {
  int64_t ps = 0;
  // Whether no exchange takes less from a state that slices of `from` lead to, and whether none to
  // one whose slices lead to `to` does. All may fetch there though they may not here, and where
  // more is wanted members fetch for one another.
  bool of_less_held = true;
  bool of_more_wanted = true;
};
// By what ranks hold and want and by peers, not by units: told sooner. Where floors are 0, the
// bound of any plan. Up to `enough_ps`, and above it, it may be less than is known, but on the same
// side of it.
// Law: never above price_between, nor above that between states of which it is told, too.
[[nodiscard]] AnyWayFloor boxes_floor(const PlanProblem& p, const SearchState& from,
                                      const SearchState& to, int64_t enough_ps = INT64_MAX);
// The same by its peers alone: told sooner still. The same law.
[[nodiscard]] AnyWayFloor few_peers_floor(const PlanProblem& p, const SearchState& from,
                                          const SearchState& to, int64_t enough_ps = INT64_MAX);
// The same where their lists are known.
[[nodiscard]] AnyWayFloor few_peers_floor(const PlanProblem& p, const SearchState& from,
                                          const SearchState& to, const RankSides::Lists& before,
                                          const RankSides::Lists& after, int64_t enough_ps);

}  // namespace meshplan
