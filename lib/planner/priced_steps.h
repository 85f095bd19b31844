// Steps priced as a redistribution of their own, to compare with.
#pragma once

#include "plan/question.h"

namespace meshplan {

[[nodiscard]] PlannedRedistribution priced_steps(const MeshTable& meshes, const Topology& topology,
                                                 const Request& request, StepList list);

}  // namespace meshplan
