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

Totals total_of(const std::vector<PlannedRedistribution>& redistributions) {
  Totals totals;
  for (const PlannedRedistribution& r : redistributions)
    add_weighted(totals, r.totals, r.request.count);
  return totals;
}

}  // namespace meshplan
