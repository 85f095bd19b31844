#include "plan/totals.h"

#include <algorithm>

#include "base/int_math.h"
#include "plan/plan.h"

namespace meshplan {

void add_weighted(int64_t& sum, int64_t part, int64_t count) {
  sum = saturating_add(sum, saturating_mul(part, count));
}

void add_weighted(Totals& sum, const Totals& part, int64_t count) {
  add_weighted(sum.collectives, part.collectives, count);
  add_weighted(sum.wire_bytes, part.wire_bytes, count);
  add_weighted(sum.predicted_ps, part.predicted_ps, count);
  add_weighted(sum.lower_bound_bytes, part.lower_bound_bytes, count);
  add_weighted(sum.lower_bound_ps, part.lower_bound_ps, count);
  sum.peak_bytes = std::max(sum.peak_bytes, part.peak_bytes);
}

Totals weighted(const PlannedRedistribution& redistribution) {
  Totals totals;
  add_weighted(totals, redistribution.totals, redistribution.request.count);
  return totals;
}

Totals weighted(const PlannedBundle& bundle) {
  Totals once;
  once.collectives = bundle.totals.rounds;
  once.wire_bytes = bundle.totals.wire_bytes;
  once.peak_bytes = bundle.totals.peak_bytes;
  once.predicted_ps = bundle.totals.predicted_ps;
  once.lower_bound_bytes = bundle.totals.lower_bound_bytes;
  once.lower_bound_ps = bundle.totals.lower_bound_ps;
  Totals totals;
  add_weighted(totals, once, bundle.request.count);
  return totals;
}

Totals total_of(const std::vector<PlannedRedistribution>& redistributions) {
  Totals totals;
  for (const PlannedRedistribution& r : redistributions)
    add_weighted(totals, r.totals, r.request.count);
  return totals;
}

std::vector<bool> run_by_bundles(const Plan& plan) {
  std::vector<bool> bundled(plan.redistributions.size(), false);
  for (const PlannedBundle& bundle : plan.bundles) {
    for (const size_t member : bundle.request.members) bundled[member] = true;
  }
  return bundled;
}

Totals totals_of_file(const Plan& plan) {
  if (plan.bundles.empty()) return total_of(plan.redistributions);
  Totals totals;
  for (const PlannedBundle& bundle : plan.bundles) add_weighted(totals, weighted(bundle), 1);
  const std::vector<bool> bundled = run_by_bundles(plan);
  for (size_t i = 0; i < bundled.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[i];
    if (!bundled[i]) add_weighted(totals, r.totals, r.request.count);
  }
  return totals;
}

}  // namespace meshplan
