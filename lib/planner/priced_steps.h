// Steps priced as a redistribution of their own, to compare with.
#pragma once

#include <optional>

#include "plan/plan.h"
#include "plan/question.h"

namespace meshplan {

[[nodiscard]] PlannedRedistribution priced_steps(const MeshTable& meshes, const Topology& topology,
                                                 const Request& request, StepList list);

// Says of a finding which priced plan is better, and its figures.
void set_better(AuditFinding& found, const MeshTable& meshes, const PlannedRedistribution& better);

// A finding with the figures of both, where the better one surely takes less (surely_saves.h); what
// it is, and says, is left to fill in.
[[nodiscard]] std::optional<AuditFinding> surely_better(const MeshTable& meshes,
                                                        const Topology& topology,
                                                        const PlannedRedistribution& planned,
                                                        const PlannedRedistribution& better);

}  // namespace meshplan
