// The moves of the optimal planner (OPTIMAL.md, "Moves"): each says which spreads one step reaches and what it costs.
#pragma once

#include <functional>
#include <vector>

#include "planner/search.h"

namespace meshplan {

// Every slice, all_gather, reduce_scatter, all_reduce, all_to_all and to_partial from `from`. Exchanges are not here: they reach any
// spread, the search picks their targets. Costs are left out, at no collectives, but where many steps have one. `last_only`: of the
// communicating ones only those after which local steps lead to the target. `most_ps`: steps that take longer may be left out.
void list_collectives(const PlanProblem& p, const Spread& from, std::vector<Hop>& out, bool last_only = false, int64_t most_ps = INT64_MAX);
// Fills in the cost of one of them.
void price_collective(const PlanProblem& p, const Spread& from, Hop& hop);
// Both.
void collective_moves(const PlanProblem& p, const Spread& from, std::vector<Hop>& out, bool last_only = false);

// Whether slices and to_partials alone lead from here to the target (never wrongly false).
[[nodiscard]] bool local_steps_lead_to_target(const PlanProblem& p, const Spread& at);

// The cost of an exchange hop; group, reduced and phases are set.
[[nodiscard]] Hop exchange_hop(const PlanProblem& p, const Spread& from, const Spread& to, int phases);

// Peak bytes of a hop (input, output, staging).
[[nodiscard]] int64_t peak_of(const PlanProblem& p, const Spread& from, const Hop& hop);

// Every spread that holds exactly the frozen prefixes of `like` plus any arrangement of the atoms in `movable`, pending and made as in
// `like`. Stops after `limit`; false if there were more.
bool all_spreads(const PlanProblem& p, const Spread& like, uint16_t movable, size_t limit, std::vector<Spread>& out);

}  // namespace meshplan
