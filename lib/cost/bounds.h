// What some rank must receive, whatever the plan (OPTIMAL.md, "Bounds").
#pragma once

#include "mesh/mesh.h"
#include "plan/plan.h"

namespace meshplan {

struct Bounds {
  int64_t bytes = 0;  // received by some rank
  int64_t ps = 0;     // predicted time that no plan can beat in this model
};

[[nodiscard]] Bounds lower_bounds(const Request& request, const MeshTable& meshes, const Topology& topology);

}  // namespace meshplan
