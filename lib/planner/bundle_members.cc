#include "planner/bundle_members.h"

#include <algorithm>
#include <utility>

#include "cost/bounds.h"
#include "cost/step_cost.h"
#include "planner/numerics.h"

namespace meshplan {
namespace {

// What the pipeline says of a plan, of steps that the bundle chose. A0408, A0410 and A0411 are of
// other steps.
void finish_chosen(const Plan& plan, PlannedRedistribution& planned) {
  const Request& request = planned.request;
  const Mesh& src = plan.meshes.meshes[request.src_mesh];
  planned.trace = trace_of(request.src, std::as_const(planned).steps, src,
                           plan.meshes.meshes[request.dst_mesh]);
  planned.unmerged_trace = planned.trace;
  planned.reductions = reduction_notes(request.src, std::as_const(planned).steps, src);
  planned.warnings.clear();
  planned.alternatives.clear();
  std::erase_if(planned.audit.own(), [](const AuditFinding& f) {
    return f.code == "A0408" || f.code == "A0410" || f.code == "A0411";
  });
  planned.shortcuts = {};
  planned.shortcuts.add(Shortcut::for_bundle);
  planned.proven_gap_ps =
      gap_ps(planned.totals.predicted_ps, 0, planned.totals.lower_bound_ps, planned.shortcuts);
  if (planned.proven_gap_ps == 0) planned.shortcuts = {};
}

}  // namespace

void answer_as(const PlannedRedistribution& other, PlannedRedistribution& entry) {
  Request request = std::move(entry.request);
  entry = other;
  entry.request = std::move(request);
}

void settle_members(Plan& plan, const MeshLevels& levels, std::vector<Kind>& kinds,
                    const std::vector<size_t>& chosen) {
  for (size_t k = 0; k < kinds.size(); ++k) {
    PlannedRedistribution& way = kinds[k].ways[chosen[k]].planned;
    const PlannedRedistribution& own = plan.redistributions[kinds[k].members.front()];
    if (std::as_const(way.steps).list() == std::as_const(own.steps).list()) continue;
    price_redistribution(way, plan.meshes, *levels[way.request.src_mesh]);
    finish_chosen(plan, way);
    for (const size_t member : kinds[k].members) answer_as(way, plan.redistributions[member]);
  }
}

}  // namespace meshplan
