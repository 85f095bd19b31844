#include "verify/unmerged_runs.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/int_math.h"
#include "verify/figures.h"

namespace meshplan::verification {
namespace {

bool sums_up(const Placement& placement) {
  return is_partial(placement) && (placement.op == ReduceOp::sum || placement.op == ReduceOp::avg);
}

// One mesh dim that PyTorch could have joined with others.
bool may_be_in_a_run(const Step& step) {
  const bool joins =
      step.op == Op::all_gather || step.op == Op::reduce_scatter || step.op == Op::all_reduce;
  return joins && step.mesh_dims.size() == 1 && step.src && step.dst;
}

bool goes_on(const Step& first, const Step& step) {
  if (!may_be_in_a_run(step) || step.op != first.op || *step.dst != *first.dst) return false;
  return *step.src == *first.src || (sums_up(*step.src) && sums_up(*first.src));
}

UnmergedRun run_of(std::span<const Step> steps) {
  UnmergedRun run;
  run.op = steps.front().op;
  if (run.op != Op::all_reduce)
    run.tensor_dim =
        (run.op == Op::all_gather ? *steps.front().src : *steps.front().dst).tensor_dim;
  const auto dim = static_cast<size_t>(run.tensor_dim);
  for (const Step& step : steps) {
    const int64_t ranks = ranks_of_group(step);
    run.mesh_dims.push_back(step.mesh_dims.front().mesh_dim);
    run.collectives += ranks > 1 ? 1 : 0;
    run.ranks = saturating_mul(run.ranks, ranks);
    if (dim < step.logical_shape.size()) run.extent = std::max(run.extent, step.logical_shape[dim]);
  }
  return run;
}

}  // namespace

std::vector<UnmergedRun> unmerged_runs(const PlannedRedistribution& redistribution) {
  const std::span<const Step> steps = std::as_const(redistribution).steps.list();
  std::vector<UnmergedRun> runs;
  for (size_t first = 0; first < steps.size();) {
    size_t end = first + 1;
    if (may_be_in_a_run(steps[first])) {
      while (end < steps.size() && goes_on(steps[first], steps[end])) ++end;
    }
    if (end - first > 1) runs.push_back(run_of(steps.subspan(first, end - first)));
    first = end;
  }
  return runs;
}

std::optional<WarningKind> obstacle_of(const UnmergedRun& run, bool flattened) {
  const std::vector<int32_t>& dims = run.mesh_dims;
  const bool in_order = run.op == Op::all_gather       ? std::is_sorted(dims.rbegin(), dims.rend())
                        : run.op == Op::reduce_scatter ? std::is_sorted(dims.begin(), dims.end())
                                                       : true;
  if (!in_order) return WarningKind::non_ascending;
  if (!flattened) return WarningKind::missing_flatten;
  if (run.op == Op::reduce_scatter && run.extent % run.ranks != 0) return WarningKind::uneven_shape;
  return std::nullopt;
}

}  // namespace meshplan::verification
