#include "planner/widest_first.h"

#include <algorithm>

#include "cost/listed_bounds.h"
#include "search/joining_sums.h"
#include "search/optimal.h"

namespace meshplan {
namespace {

// What the plan with every set declared may take: of the work, as what its search comes to know of
// exchanges serves the one that is asked for; so many units on larger meshes, where questions end
// with their work.
constexpr int64_t widest_percent = 50;
constexpr int64_t brief_work = 400'000;

int64_t widest_work(const Mesh& mesh, const work::Budget& budget) {
  if (mesh_size(mesh) <= bounded_ranks) return budget.left / 100 * widest_percent;
  return std::min(budget.left, brief_work);
}

}  // namespace

Result<StepList> plan_widest_first(const PlanQuestion& question, const LevelMap& levels,
                                   const std::vector<DimSet>& undeclared, work::Budget& budget,
                                   LeftForAdvice& left) {
  const Request& request = *question.request;
  if (undeclared.empty() || request.src_mesh != request.dst_mesh)
    return plan_optimal(question, levels, budget);
  std::shared_ptr<PlanProblem> problem;
  const Mesh& mesh = question.meshes->meshes[request.src_mesh];
  work::Budget share{widest_work(mesh, budget)};
  const int64_t given = share.left;
  auto widest = plan_optimal(question, levels, share, {undeclared, INT64_MAX, &problem});
  left.every_set_work = given - share.left;
  budget.spend(left.every_set_work);
  if (widest && widest->shortcuts.none()) {
    left.none_missing = std::all_of(
        widest->steps.begin(), widest->steps.end(),
        [&](const Step& step) { return runs_as_declared(*question.meshes, mesh, step); });
    if (left.none_missing) return widest;
    left.with_every_set = std::move(widest->steps);
  }
  auto planned = plan_optimal(question, levels, budget, {{}, INT64_MAX, &problem});
  // With fewer sets nothing takes less, but for what joining counts at.
  if (planned && !planned->shortcuts.none() && widest && problem)
    planned->least_ps = std::max(planned->least_ps, widest->least_ps - most_joining_ps(*problem));
  left.problem = std::move(problem);
  left.levels = &levels;
  return planned;
}

}  // namespace meshplan
