// What each op may do to the digits, and whether every rank then finds its data (PLANNING.md, "Steps").
//
//     op              digits of mesh_dims                  other digits
//     all_gather      shard -> free                        as they were
//     reduce_scatter  pending -> shard                     free -> shard (each rank keeps its part), else as they were
//     all_reduce      pending -> free                      as they were
//     all_to_all      shard d -> shard e                   as they were
//     slice           free -> shard                        as they were
//     to_partial      free -> pending, shard -> pending sum   as they were
//     exchange        all mesh dims: any role that is not pending; pending digits stay, or disappear where reduce_op is set
//
// Roles alone do not make a step right: the lists' order and the unevenness of the extents do, by coverage.h. Who is heard: the ranks that
// differ on the gathered, moved or zero-filled digits; nobody in a slice; and in a reduction each contribution must itself hold the whole
// new box, so that nobody is heard there either. A reduction takes each contribution once because its digits leave the pending set at once.
#pragma once

#include "mesh/mesh.h"
#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

// One step on one mesh. `before` has passed check_state; the step's own state is checked here.
[[nodiscard]] Problem check_step(const Mesh& mesh, std::span<const int64_t> mesh_shape, std::span<const int64_t> tensor_shape,
                                 const State& before, const Step& step);

// An exchange from a state on one mesh to a state on another: nothing pending may cross.
[[nodiscard]] Problem check_crossing(std::span<const int64_t> src_mesh_shape, std::span<const int64_t> dst_mesh_shape, size_t tensor_rank,
                                     const State& before, const Step& step);

// The reduction op and the divisor of a step that reduces these pending atoms: sum, min, max and product run as they are, avg as avg or as
// a sum with a divisor, sum with avg as a sum divided by the product of the avg sizes.
[[nodiscard]] Problem check_reduction(std::span<const PendingAtom> reduced, const Step& step);

}  // namespace meshplan::verification
