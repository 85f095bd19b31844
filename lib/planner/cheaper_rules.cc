#include "planner/cheaper_rules.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/step_cost.h"
#include "planner/numerics.h"
#include "search/edge_steps.h"
#include "tensor/largest_elements.h"
#include "torch_rules/rule_planner.h"

namespace meshplan {
namespace {

// The graph's rules look at every placement of every mesh dim, of one rank, too.
bool has_few_placements(const Request& request, const Mesh& mesh) {
  constexpr int64_t most_placements = 5'000;
  int64_t placements = 1;
  for (size_t m = 0; m < mesh.dims.size(); ++m)
    placements = saturating_mul(placements, std::ssize(request.tensor.shape) + 2);
  return placements <= most_placements;
}

Totals totals_of(const PlanQuestion& question, const LevelMap& levels,
                 const std::vector<Step>& steps) {
  PlannedRedistribution planned;
  planned.request = *question.request;
  planned.steps = steps;
  price_redistribution(planned, *question.meshes, levels);
  return planned.totals;
}

// The default rule: no state on the way is larger than the larger end.
bool keeps_to_ends(const Request& request, const std::vector<Step>& steps, const Mesh& mesh) {
  const auto bytes = [&](const State& state) {
    return largest_bytes(state, request.tensor, mesh_shape(mesh));
  };
  const int64_t most = std::max(bytes(request.src), bytes(request.dst));
  return std::all_of(steps.begin(), steps.end(),
                     [&](const Step& step) { return bytes(step.state) <= most; });
}

// The greedy rules count the logical shape of a step in a way of their own.
void as_searched(const Request& request, const Mesh& mesh, std::vector<Step>& steps) {
  const State* before = &request.src;
  for (Step& step : steps) {
    step.logical_shape =
        shape_apart(*before, step.mesh_dims, request.tensor.shape, mesh_shape(mesh));
    before = &step.state;
  }
}

bool is_allowed(const PlanQuestion& question, const Mesh& mesh, const std::vector<Step>& steps,
                const Totals& totals) {
  if (question.options->one_reduction &&
      !check_one_reduction(reduction_notes(question.request->src, steps, mesh)))
    return false;
  const int64_t limit = question.options->max_memory_bytes;
  if (limit == 0) return keeps_to_ends(*question.request, steps, mesh);
  return limit < 0 || totals.peak_bytes <= limit;
}

}  // namespace

std::vector<RulesAsked> rules_in_time(const Request& request, const Mesh& mesh) {
  const bool few = has_few_placements(request, mesh);
  std::vector<RulesAsked> rules;
  // Of other orders than the default one it is the graph that greedy asks.
  if (few || (is_default_order(request.src) && is_default_order(request.dst)))
    rules.push_back({PlannerKind::greedy, CostModel::dtensor});
  if (few) rules.push_back({PlannerKind::graph, CostModel::dtensor});
  if (few && makes_sums(request)) rules.push_back({PlannerKind::graph, CostModel::topology});
  return rules;
}

bool makes_sums(const Request& request) {
  const std::vector<PendingSubAxis>& before = request.src.partial;
  return std::any_of(request.dst.partial.begin(), request.dst.partial.end(),
                     [&](const PendingSubAxis& after) {
                       return after.sub_axis.size > 1 &&
                              std::find(before.begin(), before.end(), after) == before.end();
                     });
}

void take_cheaper_rules(const PlanQuestion& question, const LevelMap& levels, StepList& list) {
  const Request& request = *question.request;
  const Mesh& mesh = levels.mesh();
  const auto sums_may_be_made_sooner = [&] {
    list.shortcuts.add(Shortcut::made_sums);
    list.least_ps = 0;
  };
  if (makes_sums(request) && !has_few_placements(request, mesh)) sums_may_be_made_sooner();
  int64_t best_ps = totals_of(question, levels, list.steps).predicted_ps;
  for (const RulesAsked& one : rules_in_time(request, mesh)) {
    PlanOptions options = *question.options;
    options.planner = one.planner;
    options.cost_model = one.cost_model;
    const PlanQuestion asked{question.meshes, question.topology, question.request, &options};
    const auto rules = rule_transitions(asked);
    if (!rules) continue;
    StepList other = merged_steps(asked, *rules);
    as_searched(request, mesh, other.steps);
    const Totals totals = totals_of(question, levels, other.steps);
    if (totals.predicted_ps >= best_ps) continue;
    if (!is_allowed(question, mesh, other.steps, totals)) {
      // Another that makes sums may take less, too, and be allowed.
      if (makes_sums(request)) sums_may_be_made_sooner();
      continue;
    }
    best_ps = totals.predicted_ps;
    list.steps = std::move(other.steps);
    list.dst = std::move(other.dst);
    if (makes_sums(request)) sums_may_be_made_sooner();
  }
}

}  // namespace meshplan
