// What a plan says about its steps besides the states: groups, placements, merging, logical shapes,
// totals. None of it needs a cost model.
#pragma once

#include <span>

#include "mesh/mesh.h"
#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

// The layout of the ranks that differ on these sub-axes alone, in mesh order. The sub-axes must lie
// in the mesh.
[[nodiscard]] Result<Layout> layout_of(const Mesh& mesh, std::span<const int64_t> mesh_shape,
                                       std::span<const SubAxis> sub_axes);

// Whether some view of the group's universe has a dim or a flatten of its layout.
[[nodiscard]] bool is_declared_layout(const MeshTable& table, const PlanGroup& group);

// Ranks that talk with one another in the step.
[[nodiscard]] int64_t ranks_of_group(const Step& step);

// A communicating step runs on the group of its mesh_dims: one of the plan's, with their layout. A
// local step, and a collective of one rank, name none. Under the native rules a collective on
// several mesh dims may run on their ranks in another order. `from`: where the redistribution
// crosses meshes, the one of the state before. An exchange of it may run on the root's ranks, too,
// and between two universes runs on the group of both.
[[nodiscard]] Problem check_group(const Plan& plan, Rules rules, const Mesh& mesh, const Mesh* from,
                                  std::span<const int64_t> mesh_shape, const Step& step);

// src, dst and tensor_dim, or moves, say what the digits do: one src and dst (and the tensor dim,
// where just one of them is a shard) if all mesh_dims have the same, else one move for each.
[[nodiscard]] Problem check_moves(const Digits& digits, std::span<const int64_t> mesh_shape,
                                  const DigitState& before, const DigitState& after,
                                  const State& state_before, const Step& step);

// The tensor as the rank at coordinate 0 has it outside of the step's mesh dims: for greedy plans
// narrowed by the source's shards on the mesh dims before, for others by the state's own other mesh
// dims; of several steps merged, the outermost.
[[nodiscard]] Problem check_logical_shape(const PlannedRedistribution& redistribution,
                                          std::span<const int64_t> mesh_shape, const State& before,
                                          const Step& step);

// merged counts the steps that a collective stands for, one a mesh dim; 1 for all other steps.
[[nodiscard]] Problem check_merged(const Step& step);

// The reductions noted are those of the steps: their mesh dims, nesting and collectives (counted in
// reductions.cc), of which there is one where the plan must have no more.
[[nodiscard]] Problem check_reductions(const Plan& plan,
                                       const PlannedRedistribution& redistribution,
                                       std::span<const int64_t> src_mesh_shape);

// The unmerged trace is that of the searched plan itself; under the rule planners it passes the
// states of the steps and, between them, those of the steps that merged ones stand for: one mesh
// dim after the other has what the step leaves it with.
[[nodiscard]] Problem check_unmerged_trace(const PlannedRedistribution& redistribution,
                                           std::span<const int64_t> mesh_shape);

// The totals of a redistribution are those of its steps.
[[nodiscard]] Problem check_totals(const PlannedRedistribution& redistribution);

// Every mesh has distinct ranks and copies that tile the world; every group is what its dims say,
// and is used as often as it says.
[[nodiscard]] Problem check_meshes(const Plan& plan);
[[nodiscard]] Problem check_groups(const Plan& plan);
// The file's totals are those of its bundles, and of its redistributions that are in none, times
// their counts.
[[nodiscard]] Problem check_file_totals(const Plan& plan);

}  // namespace meshplan::verification
