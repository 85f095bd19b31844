#include "planner/widest_first.h"

#include <algorithm>

#include "search/optimal.h"

namespace meshplan {
namespace {

// Units that the plan with every set declared may take: where it is found at all, it mostly is for
// a fraction of that.
constexpr int64_t brief_work = 400'000;

}  // namespace

Result<StepList> plan_widest_first(const PlanQuestion& question, const LevelMap& levels,
                                   const std::vector<DimSet>& undeclared, work::Budget& budget,
                                   LeftForAdvice& left) {
  const Request& request = *question.request;
  if (undeclared.empty() || request.src_mesh != request.dst_mesh)
    return plan_optimal(question, levels, budget);
  std::shared_ptr<PlanProblem> problem;
  work::Budget brief{std::min(budget.left, brief_work)};
  const int64_t given = brief.left;
  auto widest = plan_optimal(question, levels, brief, {undeclared, INT64_MAX, &problem});
  left.every_set_work = given - brief.left;
  budget.spend(left.every_set_work);
  if (widest && widest->shortcuts.none()) {
    const Mesh& mesh = question.meshes->meshes[request.src_mesh];
    left.none_missing = std::all_of(
        widest->steps.begin(), widest->steps.end(),
        [&](const Step& step) { return runs_as_declared(*question.meshes, mesh, step); });
    if (left.none_missing) return widest;
    left.with_every_set = std::move(widest->steps);
  }
  return plan_optimal(question, levels, budget, {{}, INT64_MAX, &problem});
}

}  // namespace meshplan
