// What a plan says about its steps besides the states: groups, placements, merging, logical shapes, totals. None of it needs a cost model.
#pragma once

#include <span>

#include "mesh/mesh.h"
#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

// The layout of the ranks that differ on these atoms alone, in mesh order. The atoms must lie in the mesh.
[[nodiscard]] Result<Layout> layout_of(const Mesh& mesh, std::span<const int64_t> mesh_shape, std::span<const Atom> atoms);

// A communicating step runs on the group of its mesh_dims: same layout, size and number of communicators; a local step on none.
[[nodiscard]] Problem check_group(const Plan& plan, const Mesh& mesh, std::span<const int64_t> mesh_shape, const Step& step);

}  // namespace meshplan::verification
