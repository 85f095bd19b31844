// The independent proof that a plan does what it says. It shares nothing with the planners but the
// meaning of placements (tensor/).
//
// It checks, for each redistribution, in this order:
//   1. every state is well formed: each sub-axis at most once, factors nest, partial kinds may mix,
//      tensor dims are in range;
//   2. the first step starts at the source, each step at the state after the one before it, the
//      last ends at the target;
//   3. the op of the step may make that transition on its mesh dims: local steps receive nothing, a
//      collective uses only ranks that differ on `mesh_dims`, which are in mesh order and belong to
//      the group named; an exchange keeps the pending set unless it reduces;
//   4. every rank receives each element of its new box from ranks of its group that hold it (uneven
//      and empty boxes included);
//   5. every partial contribution is reduced exactly once, with the right op and scale; to_partial
//      adds exactly one contribution;
//   6. groups are disjoint and cover the mesh; group ids, sizes, counts and layouts agree with the
//      mesh;
//   7. src, dst, tensor_dim, moves, merged, phases, logical_shape and the traces, merged and not,
//      agree with the states, and so does every number in the reasons of the steps (sentences.h).
// And of its figures and claims (claims.h):
//   8. wire_bytes, peak_bytes and predicted_ns of every step and of all totals are what its states
//      give, counted again here; memory limit, rules, groups and merging are those of the file's
//      options;
//   9. bounds, gap, alternatives, audit, warnings, topology and names agree with one another and
//      with the steps.
// And of its bundles: what verify/bundle.h says.
// It plans nothing: what other plans take is held against the plan that is there and listed
// (compared_only). Nor does it have the spec: what was asked for is taken as the file says it.
// tests/verify/altered.py alters every value of plan files and lists all that is not noticed, with
// the reason.
// Its cost does not grow with the number of ranks where the layout allows: it works on sub-axes and
// on the distinct chunks of a tensor dim. What would take more work than a stated bound is not
// counted, and is listed.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace meshplan {

// Proves that one redistribution of the plan moves its data correctly (1 to 7). The error
// (wrong_data) names the redistribution id and the step: "redistribution 'x', step 2: ...". Where
// it is across meshes, has no steps and is of more ranks than are compared one by one, the error is
// of the environment.
[[nodiscard]] Status verify_redistribution(const Plan& plan,
                                           const PlannedRedistribution& redistribution);

// What was counted again.
struct Recounted {
  std::optional<int64_t> ps;          // of all steps; nullopt: not all were counted
  std::vector<std::string> left_out;  // figures that were not, each with its place and the reason
};
// Proves the figures of one redistribution that is proven right, and that it keeps to the file's
// options (8).
[[nodiscard]] Result<Recounted> verify_figures(const Plan& plan,
                                               const PlannedRedistribution& redistribution);
// Proves what it claims beyond its figures: bounds, gap, alternatives, audit and warnings (9).
[[nodiscard]] Status verify_claims(const Plan& plan, const PlannedRedistribution& redistribution);

// Proves the whole plan: every redistribution and bundle, the groups, the names, the topology and
// the totals.
// Adds to `left_out` what was not counted.
[[nodiscard]] Status verify_plan(const Plan& plan, std::vector<std::string>* left_out = nullptr);

// Claims of a proven plan that are not counted again, as they are about other plans: they are
// compared with the plan's own figures only. "lower bounds", "3 alternatives".
[[nodiscard]] std::vector<std::string> compared_only(const Plan& plan);

}  // namespace meshplan
