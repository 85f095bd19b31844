// How many peers some rank has in an exchange at least, where closed forms do not say so.
//
//     64 ranks on hosts of 8, S(0) -> S(1): a target meets 64 shards; 8 of them lie in its host
//     one phase      63 peers, 56 of them in other hosts
//
// Every shard that a target meets, each contribution to a sum by itself, comes from a holder of its
// own; ranks that want part of a shard share its holders.
#pragma once

#include <cstdint>
#include <vector>

#include "search/search_state_bytes.h"

namespace meshplan {

struct PlanProblem;

struct ExchangePeers {
  int64_t shards = 1;  // that a target meets, contributions by themselves
  // In one phase, and of these in other units of the innermost level.
  int64_t all = 0;
  int64_t outside = 0;
  // In two: of other units, by a member that fetches; members that it passes what it fetched to.
  int64_t fetched_from = 0;
  int64_t by_all_from = 0;  // the same fetched by all
  int64_t passed_to = 0;
  // Of units of the innermost level: the most that hold one shard, the most ranks of one that want
  // part of it, the most targets of these, the fewest that want each element.
  int64_t holding_units = 1;
  int64_t wanting_inside = 1;
  int64_t targets_inside = 1;
  int64_t wanting_units = 1;
};
// Two different states: what was asked last is remembered; and by mask of sub-axes how many ranks
// differ on them and on nothing else, in all and in one unit of the innermost level at most, and
// the most units that they lie in; how many coordinates on them the ranks of a unit have at most. 0
// where not asked yet.
struct KnownPeers {
  SearchState from;
  SearchState to;
  ExchangePeers peers;
  struct Differing {
    int64_t ranks = 0;
    int64_t inside = 0;
    int64_t units = 0;
    int64_t coordinates = 0;
  };
  std::vector<Differing> differing;
};
// Valid until the next call.
[[nodiscard]] const ExchangePeers& exchange_peers(const PlanProblem& p, const SearchState& from,
                                                  const SearchState& to);

}  // namespace meshplan
