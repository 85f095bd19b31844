// The optimal planner: the least predicted time over all sequences of the moves of OPTIMAL.md, with its proven gap.
#pragma once

#include "base/result.h"
#include "transfer/level_map.h"
#include "planner/planner.h"
#include "planner/search.h"

namespace meshplan {

// Plans the question's request as it stands (backward targets already normalised). Across meshes: steps on the source mesh, one exchange,
// steps on the target mesh. Errors (no_plan): a pending reduction that the target wants pending with another op that may not mix, nothing
// within the memory limit (the error names the least peak that exists).
[[nodiscard]] Result<StepList> plan_optimal(const PlanQuestion& question);

// The same with the source mesh's level map at hand. `also_declared`: sets of mesh dims that count as declared flattened, for what-if
// questions.
[[nodiscard]] Result<StepList> plan_optimal(const PlanQuestion& question, const LevelMap& levels,
                                            const std::vector<std::vector<size_t>>& also_declared = {}, int64_t below_ps = INT64_MAX);

// The next best plans after `best`: for every other first step the cheapest plan that starts with it, cheapest first, `count` at most, each
// trace once (plan --alternatives). None across meshes.
[[nodiscard]] std::vector<Alternative> alternative_plans(const PlanQuestion& question, const LevelMap& levels,
                                                         const PlannedRedistribution& best, int64_t count);

}  // namespace meshplan
