// The independent proof that a plan does what it says. Shares nothing with the planners but the meaning of placements (tensor/).
//
// It checks, for each redistribution, in this order:
//   1. every state is well formed: each atom at most once, factors nest, partial kinds may mix, tensor dims in range;
//   2. the first step starts at the source, each step at the state that the one before it left, the last ends at the target;
//   3. the step's op is allowed to make that transition on its mesh dims: local steps receive nothing, a collective only uses ranks that
//   differ
//      on `mesh_dims`, which are in mesh order and belong to the group named; an exchange keeps the pending set unless it reduces;
//   4. every rank receives each element of its new box from ranks of its group that hold it (uneven and empty boxes included);
//   5. every partial contribution is reduced exactly once, with the right op and scale; to_partial adds exactly one contribution;
//   6. groups are disjoint and cover the mesh; group ids, sizes, counts and layouts agree with the mesh;
//   7. src, dst, tensor_dim, moves, merged, phases, logical_shape and the trace agree with the states.
// Its cost does not grow with the number of ranks where the layout allows: it works on atoms and on the distinct chunks of a tensor dim.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace meshplan {

// Proves one redistribution of the plan. The error (wrong_data) names the redistribution id and the step: "redistribution 'x', step 2:
// ...".
[[nodiscard]] Status verify_redistribution(const Plan& plan, const PlannedRedistribution& redistribution);

// Proves all of them, and that totals, groups and warnings agree with the steps.
[[nodiscard]] Status verify_plan(const Plan& plan);

}  // namespace meshplan
