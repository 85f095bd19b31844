// The optimal planner: the least predicted time over all sequences of moves (moves.h), with
// its proven gap.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "plan/question.h"
#include "search/search.h"
#include "search/work.h"
#include "transfer/level_map.h"

namespace meshplan {

// Of any order of the target (dst_order) so many are tried; with more, the plan says few_orders.
constexpr size_t most_orders = 720;

// What else there is to say of a question to the optimal planner.
struct WhatIf {
  std::vector<std::vector<size_t>>
      also_declared;  // sets of mesh dims that count as declared flattened
  int64_t below_ps =
      INT64_MAX;  // only a plan that takes less is wanted; an error (no_plan) where none was found
  // What searches of the question know, which differ in nothing but the above and have the
  // same `levels`: taken up and left for the next. Not for any order of the target, nor across
  // meshes.
  std::shared_ptr<PlanProblem>* known = nullptr;
  // Of a plan that was found with shards on fewer tensor dims, bytes.
  int64_t least_peak = INT64_MAX;
};

// Plans the question's request as it stands (backward targets already normalised). Across meshes:
// steps on the source mesh, one exchange, steps on the target mesh. `levels`: of the source mesh.
// `budget`: the work that it may take, counted down. Errors (no_plan): a pending reduction that the
// target wants pending with another op that may not mix, nothing within the memory limit (the error
// names the least peak that exists).
[[nodiscard]] Result<StepList> plan_optimal(const PlanQuestion& question, const LevelMap& levels,
                                            work::Budget& budget, const WhatIf& what_if = {});
// The same with the work that the question's options allow.
[[nodiscard]] Result<StepList> plan_optimal(const PlanQuestion& question, const LevelMap& levels);
[[nodiscard]] Result<StepList> plan_optimal(const PlanQuestion& question);

// Whether a question of which nothing was found is to be asked again with shards on more tensor
// dims, and that question (PlanQuestion::parks_anywhere).
[[nodiscard]] bool may_park_elsewhere(const PlanQuestion& question, const WhatIf& what_if,
                                      const Shortcuts& shortcuts);
[[nodiscard]] PlanQuestion wider(const PlanQuestion& question);
// What else is said of that one, of which nothing is known but a plan of so little memory.
[[nodiscard]] WhatIf of_wider(const WhatIf& what_if, const LeastPeak& least);
// What there is to say where nothing fits the limit.
[[nodiscard]] Error nothing_fits(int64_t max_memory_bytes, const LeastPeak& least,
                                 const Shortcuts& shortcuts);

// Other plans than `best`: for every other first step the cheapest plan that starts with it,
// cheapest first, `count` at most, each trace once and the best's never (plan --alternatives). So
// the second best plan is missing where it starts as the best does. None across meshes. Where the
// budget does not suffice for every first step, of those that may be the cheapest.
[[nodiscard]] std::vector<Alternative> alternative_plans(const PlanQuestion& question,
                                                         const LevelMap& levels,
                                                         const PlannedRedistribution& best,
                                                         int64_t count, work::Budget& budget);

}  // namespace meshplan
