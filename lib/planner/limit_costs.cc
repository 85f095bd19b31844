#include "planner/limit_costs.h"

#include <string>

#include "base/text.h"
#include "planner/priced_steps.h"
#include "planner/surely_saves.h"

namespace meshplan {

std::optional<AuditFinding> limit_costs(const MeshTable& meshes, const Topology& topology,
                                        const PlannedRedistribution& within,
                                        const PlannedRedistribution& without_limit) {
  const Totals& now = within.totals;
  const Totals& free = without_limit.totals;
  if (free.predicted_ps >= now.predicted_ps ||
      !surely_saves(topology, within.steps.list(), without_limit.steps.list()))
    return std::nullopt;
  AuditFinding found;
  found.code = "A0410";
  found.kind = "limit_costs";
  found.message = "with a peak of " + human_bytes(free.peak_bytes) + " a rank the plan takes " +
                  human_ns(ns_of_ps(free.predicted_ps)) + "; within the memory limit " +
                  human_ns(ns_of_ps(now.predicted_ps)) + ", with a peak of " +
                  human_bytes(now.peak_bytes) + "; plan with --max-memory " +
                  std::to_string(free.peak_bytes) + " or more for its steps";
  found.wire_bytes = now.wire_bytes;
  found.predicted_ps = now.predicted_ps;
  set_better(found, meshes, without_limit);
  return found;
}

}  // namespace meshplan
