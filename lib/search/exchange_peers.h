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
#include <optional>
#include <vector>

#include "cost/collective_time.h"
#include "search/exchange_way.h"
#include "search/rank_sides.h"
#include "search/search_state_bytes.h"

namespace meshplan {

struct PlanProblem;

struct ExchangePeers {
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
  PaidPeers paid;  // of these the ones that need not be outside
  bool operator==(const ExchangePeers&) const = default;
};
// What an exchange takes at least by its peers alone, ns, by ExchangeWay.
using LeastByPeers = std::array<int64_t, exchange_ways.size()>;

// What peers cost at least in a topology, ns.
struct PeerPrices {
  int64_t inner_latency_ns = 0;  // within a unit of the innermost level
  int64_t inner_peer_ns = 0;
  int64_t outer_latency_ns = 0;  // beyond it
  int64_t outer_peer_ns = 0;
  // As many others as a unit has on the level where they cost least, then on the next.
  struct Level {
    int64_t most = 0;
    int64_t each_ns = 0;
  };
  std::vector<Level> cheapest_first;
};

// What peers of exchanges are counted by. Of very many pairs of states few differ in any of it
// (Met): what their peers cost at least is kept by it, and all of the peers of the pair asked last.
struct KnownPeers {
  PeerPrices prices;
  // Ranks that differ on a mask of sub-axes and on nothing else.
  struct Differing {
    int64_t ranks = 0;        // 0: not asked yet
    int64_t inside = 0;       // one unit of the innermost level, at most
    int64_t units = 0;        // that they lie in, at most
    int64_t coordinates = 0;  // on the sub-axes, that ranks of one unit have, at most
    bool operator==(const Differing&) const = default;
  };
  struct OfMask {
    Differing differing;
    uint32_t number = 0;  // one for all masks of which it is the same
  };
  std::vector<OfMask> masks;         // none before one is asked for, nor are prices known
  std::vector<Differing> differing;  // by number; few
  struct Met {
    // The most shards that one rank's target meets, contributions by themselves, and the most
    // targets that one shard meets; of these, in one unit of the innermost level at most.
    int64_t shards = 0;  // 0: of no pair
    int64_t targets = 1;
    int64_t shards_inside = 1;
    int64_t targets_inside = 1;
    int64_t longest = 0;   // dim that neither cuts; no more than ranks of such a unit
    uint32_t copies = 0;   // number of those that want one target
    uint32_t holders = 0;  // number of those that hold one shard
    bool operator==(const Met&) const = default;
  };
  struct OfMet {
    Met met;
    LeastByPeers least_ns{};
  };
  std::vector<OfMet> of_met;  // each has one place, which the next that has it takes
  size_t taken = 0;           // times that a place was, since they became more
  // Of the two different states asked for last.
  SearchState from;
  SearchState to;
  Met met;
  std::optional<ExchangePeers> peers;  // where they were asked for
};
// The most coordinates on these sub-axes that ranks of one unit of the innermost level have.
[[nodiscard]] int64_t coordinates_inside(const PlanProblem& p, unsigned sub_axes);
// Valid until the next call.
[[nodiscard]] const ExchangePeers& exchange_peers(const PlanProblem& p, const SearchState& from,
                                                  const SearchState& to);
// Shards that a target meets, contributions by themselves.
[[nodiscard]] int64_t shards_met(const PlanProblem& p, const SearchState& from,
                                 const SearchState& to);
// Of states whose lists are known. Valid until the next call.
[[nodiscard]] const LeastByPeers& least_by_peers(const PlanProblem& p, const SearchState& from,
                                                 const SearchState& to,
                                                 const RankSides::Lists& before,
                                                 const RankSides::Lists& after);

}  // namespace meshplan
