#include "planner/priced_steps.h"

#include <utility>

#include "cost/step_cost.h"
#include "planner/numerics.h"
#include "planner/surely_saves.h"

namespace meshplan {

PlannedRedistribution priced_steps(const MeshTable& meshes, const Topology& topology,
                                   const Request& request, StepList list) {
  PlannedRedistribution other;
  other.request = request;
  other.dst = std::move(list.dst);
  other.steps = std::move(list.steps);
  price_redistribution(other, meshes, topology);
  other.reductions = reduction_notes(request.src, other.steps, meshes.meshes[request.src_mesh]);
  return other;
}

void set_better(AuditFinding& found, const MeshTable& meshes, const PlannedRedistribution& better) {
  const Request& request = better.request;
  found.better_wire_bytes = better.totals.wire_bytes;
  found.better_predicted_ps = better.totals.predicted_ps;
  found.better_trace = trace_of(request.src, better.steps, meshes.meshes[request.src_mesh],
                                meshes.meshes[request.dst_mesh]);
}

std::optional<AuditFinding> surely_better(const MeshTable& meshes, const Topology& topology,
                                          const PlannedRedistribution& planned,
                                          const PlannedRedistribution& better) {
  if (better.totals.predicted_ps >= planned.totals.predicted_ps ||
      !surely_saves(topology, planned.steps.list(), better.steps.list()))
    return std::nullopt;
  AuditFinding found;
  found.wire_bytes = planned.totals.wire_bytes;
  found.predicted_ps = planned.totals.predicted_ps;
  set_better(found, meshes, better);
  return found;
}

}  // namespace meshplan
