// Mesh dims that are worth splitting: parts of a dim as groups of their own, where hosts cut it.
//
//     tp 12 on hosts of 8, S(0)P(sum) -> S(0)S(1)     one exchange over 12 ranks     12.0 ms
//     tp as 3 x 4     reduced in fours inside of hosts, then by the three of them     4.73 ms
//
// No flatten says that, as a set of whole dims is either one group or none. Who writes a program by
// hand can make such groups: PyTorch's DeviceMesh._unflatten, or new_group.
#pragma once

#include <optional>

#include "plan/plan.h"

namespace meshplan {

// A0409, where the plan on any groups surely takes less than the one on whole mesh dims with every
// flatten declared, and a collective of it runs on a part of a dim. Both are priced.
[[nodiscard]] std::optional<AuditFinding> split_saves(const MeshTable& meshes,
                                                      const Topology& topology,
                                                      const PlannedRedistribution& on_whole_dims,
                                                      const PlannedRedistribution& on_any_groups);

}  // namespace meshplan
