// What the memory limit costs: the plan that may take more.
//
//     6 x 16 ranks, [8192] float32, RS(0) -> S(0)S(0)     exchange, 70.8 us, peak 4.39 KiB
//     gathered whole, then sliced                         24.1 us, peak 37.3 KiB
//
// The default limit is that nothing on the way is larger than source and target, however small both
// are.
#pragma once

#include <optional>

#include "plan/plan.h"

namespace meshplan {

// A0410, where the plan without a limit surely takes less. Both are priced.
[[nodiscard]] std::optional<AuditFinding> limit_costs(const MeshTable& meshes,
                                                      const Topology& topology,
                                                      const PlannedRedistribution& within,
                                                      const PlannedRedistribution& without_limit);

}  // namespace meshplan
