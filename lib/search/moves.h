// The moves of the search: each says which states one step reaches
// and what it costs.
//
// Not among them, so that a plan without shortcuts may be beaten by one with such steps:
//     sums made where none is to be run: S(0) -> P(sum) -> R, though an all_reduce takes less than
//         an all_gather where latencies grow with ranks; what is not summed keeps its bits (the
//         audit says what it would save: planner/zero_filled_sums.h)
//     sums that join others (PlanProblem::joins) in a bundle, beside other ops than sum and avg, or
//         where the target has sums of its own, or once more on a sub-axis that the source has
//         pending; any that save less than joining_ps
//     sub-axes that neither an end nor a level cuts, and shards that rest on a tensor dim of extent
//         1 where all is cut evenly, or on none, of a scalar (make_problem.cc)
//     exchanges on one mesh that are fetched by all while sums are pending or where very much is to
//         be listed (may_go), or that go in shifts or in laps of all, as those across meshes may
//         (transfer/README.md)
#pragma once

#include <functional>
#include <vector>

#include "search/exchange_edge.h"
#include "search/packed.h"
#include "search/search.h"

namespace meshplan {

// Which moves are of any use.
struct MoveLimits {
  // Of the communicating ones only those after which local steps lead to the target.
  bool last_only = false;
  int64_t most_ps = INT64_MAX;   // for the step and all that follows it
  int64_t least_latency_ps = 0;  // of a communicating step
  // Of the problem: what bounds the rest of the way; nullptr: nothing does.
  PackedWorld* world = nullptr;
  const Packed* target = nullptr;  // packed
  int64_t most_work = INT64_MAX;   // for one list; beyond it the list is cut short
};

// Every slice, all_gather, reduce_scatter, all_reduce, all_to_all and to_partial from `from`; those
// that are of no use may be left out. Exchanges are not here: they reach any state, the search
// picks their targets. Costs are left out, at no collectives, but where many steps have one. False
// where the list was cut short.
bool list_collectives(const PlanProblem& p, const SearchState& from, std::vector<Edge>& out,
                      const MoveLimits& limits = {});
// Fills in the cost of one of them.
void price_collective(const PlanProblem& p, const SearchState& from, Edge& edge);
// Both.
bool collective_moves(const PlanProblem& p, const SearchState& from, std::vector<Edge>& out,
                      const MoveLimits& limits = {});

// Whether a step may reduce these pending sub-axes. With one_reduction only the first that reduces
// does, and all that must be.
[[nodiscard]] inline bool may_reduce(const PlanProblem& p, const SearchState& at,
                                     uint16_t reduced) {
  if (!p.one_reduction || reduced == 0) return true;
  return (at.pending & ~p.joins) == p.source_pending && (at.pending & ~p.kept & ~reduced) == 0;
}

// Whether slices and to_partials alone lead from here to the target (never wrongly false).
[[nodiscard]] bool local_steps_lead_to_target(const PlanProblem& p, const SearchState& at);

// Whether slices alone lead from one state to the other. Law: those that are listed do, one after
// another.
[[nodiscard]] bool slices_lead_to(const PlanProblem& p, const SearchState& from,
                                  const SearchState& to);

// Peak bytes of an edge (input, output, staging).
[[nodiscard]] int64_t peak_of(const PlanProblem& p, const SearchState& from, const Edge& edge);

// Every state that holds exactly the frozen prefixes of `like` plus any arrangement of the sub-axes
// in `movable`, pending and made as in `like`. Stops after `limit`; false if there were more.
bool all_spreads(const PlanProblem& p, const SearchState& like, uint16_t movable, size_t limit,
                 std::vector<SearchState>& out);

}  // namespace meshplan
