// Whether a step's op may do to the digits what the step does (op_rules.h), and whether every rank
// then finds its data.
//
// Roles alone do not make a step correct: the order of the shard lists and uneven extents are
// checked by coverage.h. The senders are the ranks that differ on the gathered, moved or
// zero-filled digits. A slice has none, and neither has a reduction: each contribution must hold
// the whole new box. A reduction takes each contribution once because its digits leave the pending
// set together.
#pragma once

#include "mesh/mesh.h"
#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

// One step on one mesh. `before` has passed check_state; the step's own state is checked here.
[[nodiscard]] Problem check_step(const Mesh& mesh, std::span<const int64_t> mesh_shape,
                                 std::span<const int64_t> tensor_shape, const State& before,
                                 const Step& step);

// An exchange from a state on one mesh to a state on another: nothing pending may cross.
[[nodiscard]] Problem check_crossing(std::span<const int64_t> src_mesh_shape,
                                     std::span<const int64_t> dst_mesh_shape, size_t tensor_rank,
                                     const State& before, const Step& step);

// The reduction op and the divisor of a step that reduces these pending sub-axes: sum, min, max and
// product run as they are, avg as avg or as a sum with a divisor, sum with avg as a sum divided by
// the product of the avg sizes.
[[nodiscard]] Problem check_reduction(std::span<const PendingSubAxis> reduced, const Step& step);

}  // namespace meshplan::verification
