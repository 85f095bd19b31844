// One exchange as a step of a plan: where it may land, what it reduces, and the local steps behind
// it.
#pragma once

#include <vector>

#include "cost/exchange.h"
#include "mesh/mesh.h"
#include "plan/plan.h"

namespace meshplan {

// Where one exchange of the request can land: the target, with only what was pending before still
// pending.
[[nodiscard]] State landing_of(const Request& request);

// The reduction of an exchange that completes all that is not pending at `landing`: the one op, or
// a sum that is divided where several ops or averages meet. `mesh`: of `src`.
void set_reduction(Step& step, const Mesh& mesh, const State& src, const State& landing);

// Whether ranks of the mesh want one box, which a unit then need fetch only once.
[[nodiscard]] bool has_copies(const State& state, const Mesh& mesh);

// What an exchange may be across meshes beside one phase from the nearest holders.
struct ExchangeWays {
  int most_phases = 2;
  Fetchers fetchers = Fetchers::all;  // those that may fetch in two phases
  bool far_shares = true;             // in one phase (transfer/far_share.h)
};
constexpr ExchangeWays nearest_in_one_phase{1, Fetchers::wanting, false};

// One exchange of the request's tensor from `src` to `landing`, which completes all that is not
// pending there: in the cut of its pieces that prices lower, or across meshes by those `ways` that
// do. In two phases all ranks of units may fetch where members fetch unevenly
// (transfer/fetch_shares.h), and several want one box or it lands where the request does; and in
// laps where the rate to one peer holds them up, or holds up one phase that lands there. A far
// share is asked for where links inside units take longest. A price above `most_ps` is of no use.
// `levels`: of the source mesh.
struct ExchangeStep {
  Step step;  // its change of state is described on one mesh alone
  ExchangeCost cost;
};
[[nodiscard]] ExchangeStep make_exchange_step(const LevelMap& levels, const Mesh& dst_mesh,
                                              const Request& request, const State& src,
                                              const State& landing, const ExchangeWays& ways,
                                              int64_t most_ps = INT64_MAX);

// Steps that make pending at the target what is not yet so at `at`.
void add_partials(const Request& request, const Mesh& dst_mesh, State at, std::vector<Step>& steps);

}  // namespace meshplan
