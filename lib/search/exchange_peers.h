// How many peers some rank has in an exchange at least, where closed forms do not say so.
//
//     64 ranks on hosts of 8, S(0) -> S(1): a target meets 64 shards; 8 of them lie in its host
//     one phase      63 peers, 56 of them in other hosts
//
// Every shard that a target meets, each contribution to a sum by itself, comes from a holder of its
// own; ranks that want part of a shard share its holders.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "search/exchange_way.h"
#include "search/rank_sides.h"
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
  // By ExchangeWay: what an exchange takes at least to start where some of its peers lie in other
  // units, in two phases with those peers; and what the peers of one phase cost at least.
  std::array<int64_t, exchange_ways.size()> start_ns{};
  int64_t peers_ns = 0;
  bool operator==(const ExchangePeers&) const = default;
};
// Two different states: what was asked last is remembered, and by mask of sub-axes how many ranks
// differ on them and on nothing else, in all and in one unit of the innermost level at most, and
// the most units that they lie in; how many coordinates on them the ranks of a unit have at most. 0
// where not asked yet. Of very many pairs of states few differ in anything that peers are counted
// by (Met): they are counted once for all that do not.
struct KnownPeers {
  SearchState from;
  SearchState to;
  struct Differing {
    int64_t ranks = 0;
    int64_t inside = 0;
    int64_t units = 0;
    int64_t coordinates = 0;
  };
  std::vector<Differing> differing;
  struct Met {
    std::array<uint32_t, max_search_dims> along{};  // each dim: ListMeetings::number
    // On which copies of a target, holders of a shard, and contributions to a sum differ.
    uint16_t copies = 0;
    uint16_t holders = 0;
    uint16_t reduced = 0;
    uint16_t unused = 0;  // so that equal ones are equal bytes
  };
  struct OfMet {
    Met met;
    ExchangePeers peers;
  };
  std::vector<OfMet> known;
  std::vector<uint32_t> slots;  // 1 + the place in `known`, by hash; open addressing; 0: free
  size_t last = 0;              // the place of what was asked last
};
// The most coordinates on these sub-axes that ranks of one unit of the innermost level have.
[[nodiscard]] int64_t coordinates_inside(const PlanProblem& p, unsigned sub_axes);
// Valid until the next call.
[[nodiscard]] const ExchangePeers& exchange_peers(const PlanProblem& p, const SearchState& from,
                                                  const SearchState& to);
// The same where their lists are known.
[[nodiscard]] const ExchangePeers& exchange_peers(const PlanProblem& p, const SearchState& from,
                                                  const SearchState& to,
                                                  const RankSides::Lists& before,
                                                  const RankSides::Lists& after);

}  // namespace meshplan
