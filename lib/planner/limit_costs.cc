#include "planner/limit_costs.h"

#include <string>

#include "base/text.h"
#include "planner/priced_steps.h"

namespace meshplan {

std::optional<AuditFinding> limit_costs(const MeshTable& meshes, const Topology& topology,
                                        const PlannedRedistribution& within,
                                        const PlannedRedistribution& without_limit) {
  const Totals& now = within.totals;
  const Totals& free = without_limit.totals;
  auto found = surely_better(meshes, topology, within, without_limit);
  if (!found) return std::nullopt;
  found->code = "A0410";
  found->kind = "limit_costs";
  found->message = "with a peak of " + human_bytes(free.peak_bytes) + " a rank the plan takes " +
                   human_ns(ns_of_ps(free.predicted_ps)) + "; within the memory limit " +
                   human_ns(ns_of_ps(now.predicted_ps)) + ", with a peak of " +
                   human_bytes(now.peak_bytes) + "; plan with --max-memory " +
                   std::to_string(free.peak_bytes) + " or more for its steps";
  return found;
}

}  // namespace meshplan
