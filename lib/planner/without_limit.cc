#include "planner/without_limit.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/priced_steps.h"

namespace meshplan {
namespace {

Totals totals_as_asked(const PlanQuestion& question, const StepList& list) {
  return priced_steps(*question.meshes, *question.topology, *question.request, list).totals;
}

bool is_cheaper(const Totals& a, const Totals& b) {
  return std::tie(a.predicted_ps, a.collectives, a.wire_bytes) <
         std::tie(b.predicted_ps, b.collectives, b.wire_bytes);
}

}  // namespace

bool asks_without_limit(const PlanQuestion& question, const Result<StepList>& found) {
  return question.options->max_memory_bytes > 0 && !(found && found->shortcuts.none());
}

PlanOptions without_limit(PlanOptions options) {
  options.max_memory_bytes = -1;
  return options;
}

void take_within_limit(const PlanQuestion& question, Result<StepList> unlimited,
                       Result<StepList>& found) {
  if (!unlimited) return;
  const Totals totals = totals_as_asked(question, *unlimited);
  const bool fits = totals.peak_bytes <= question.options->max_memory_bytes;
  if (found && !(fits && is_cheaper(totals, totals_as_asked(question, *found)))) {
    found->least_ps = std::max(found->least_ps, unlimited->least_ps);
  } else if (fits) {
    found = std::move(unlimited);
  }
}

}  // namespace meshplan
