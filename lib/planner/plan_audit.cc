#include "planner/plan_audit.h"

#include <algorithm>
#include <utility>

#include "planner/flatten_sets.h"
#include "planner/limit_costs.h"
#include "planner/priced_steps.h"
#include "planner/split_dims.h"
#include "planner/without_limit.h"
#include "planner/zero_filled_sums.h"
#include "search/optimal.h"
#include "tensor/largest_elements.h"
#include "torch_rules/audit.h"

namespace meshplan {
namespace {

class PlanAudit {
 public:
  PlanAudit(const AuditQuestion& question, work::Budget& budget)
      : q_(question),
        meshes_(*question.asked.meshes),
        topology_(*question.asked.topology),
        options_(*question.asked.options),
        request_(*question.asked.request),
        budget_(budget) {}

  std::vector<AuditFinding> run() {
    std::vector<AuditFinding> findings = of_torch();
    if (auto saves = of_splits()) findings.push_back(*std::move(saves));
    if (auto costs = of_limit()) findings.push_back(*std::move(costs));
    if (auto saves = of_zeros()) findings.push_back(*std::move(saves));
    return findings;
  }

 private:
  std::vector<AuditFinding> of_torch() {
    const bool is_torch = *q_.rules && options_.rules == Rules::dtensor;
    PlanOptions torch_options = options_;
    if (!is_torch) {
      torch_options.planner = PlannerKind::greedy;
      torch_options.rules = Rules::dtensor;
      torch_options.merge = true;
    }
    const PlanQuestion torch_question{&meshes_, &topology_, &request_, &torch_options};
    std::vector<AuditFinding> findings;
    std::optional<TorchPlan> torch;  // where this plan is another
    if (is_torch) {
      findings = audit_findings(torch_question, {**q_.rules, *q_.planned});
    } else if (const auto answer = rule_transitions(torch_question); !answer) {
      findings = {not_executable(answer.error())};
    } else {
      torch = TorchPlan{*answer, priced(merged_steps(torch_question, *answer))};
      torch->planned.planner = answer->planner;
      findings = audit_findings(torch_question, *torch);
      for (AuditFinding& found : findings)
        found.step = -1;  // of PyTorch's plan, which is not in the file
    }
    for (AuditFinding& found : findings) add_better(found);
    if (!torch) return findings;
    if (auto more = torch_moves_more(meshes_, *torch, *q_.planned))
      findings.push_back(*std::move(more));
    return findings;
  }

  void add_better(AuditFinding& found) {
    if (const auto better = best_plan(found.code == "A0405")) set_better(found, meshes_, *better);
  }

  // The native rules' best plan, priced; with one_reduction where that leaves any.
  std::optional<PlannedRedistribution> best_plan(bool one_reduction) {
    PlanOptions native = *q_.searched.options;
    native.planner = PlannerKind::optimal;
    native.rules = Rules::native;
    native.one_reduction = options_.one_reduction || one_reduction;
    auto found = best_steps({q_.searched.meshes, &topology_, &request_, &native}, {});
    if (!found) return one_reduction ? best_plan(false) : std::nullopt;
    return priced(*std::move(found));
  }

  // Of native plans on what the mesh declares.
  std::optional<AuditFinding> of_splits() {
    if (options_.planner != PlannerKind::optimal || options_.groups != GroupPolicy::declared ||
        request_.src_mesh != request_.dst_mesh)
      return std::nullopt;
    PlanOptions any = options_;
    any.groups = GroupPolicy::any;
    auto on_any = best_steps({&meshes_, &topology_, &request_, &any}, {});
    if (!on_any) return std::nullopt;
    const PlannedRedistribution split = priced(*std::move(on_any));
    if (split.totals.predicted_ps >= q_.planned->totals.predicted_ps) return std::nullopt;
    WhatIf every_set;
    every_set.also_declared = undeclared_sets(meshes_, meshes_.meshes[request_.src_mesh]);
    auto on_whole = best_steps({&meshes_, &topology_, &request_, &options_}, every_set);
    if (!on_whole) return std::nullopt;
    return split_saves(meshes_, topology_, priced(*std::move(on_whole)), split);
  }

  // Of native plans within a limit, the default one too.
  std::optional<AuditFinding> of_limit() {
    if (options_.planner != PlannerKind::optimal || options_.max_memory_bytes < 0 ||
        request_.src_mesh != request_.dst_mesh)
      return std::nullopt;
    const PlanOptions freely = without_limit(*q_.searched.options);
    auto found = best_steps({q_.searched.meshes, &topology_, &request_, &freely}, {});
    if (!found) return std::nullopt;
    return limit_costs(meshes_, topology_, *q_.planned, priced(*std::move(found)));
  }

  // Of native plans, within the limit.
  std::optional<AuditFinding> of_zeros() {
    if (options_.planner != PlannerKind::optimal || request_.src_mesh != request_.dst_mesh)
      return std::nullopt;
    const Mesh& mesh = meshes_.meshes[request_.src_mesh];
    std::optional<PlannedRedistribution> best;
    State filled;
    int64_t best_ps = q_.planned->totals.predicted_ps;
    for (State& state : zero_filled(request_, mesh_shape(mesh), most_elements(mesh))) {
      Request sums = request_;
      sums.src = state;
      WhatIf sooner;
      sooner.below_ps = best_ps;
      auto found = best_steps({q_.searched.meshes, &topology_, &sums, q_.searched.options}, sooner);
      if (!found) continue;
      StepList list;
      list.dst = found->dst;
      list.steps = filling_steps(request_, mesh, state);
      list.steps.insert(list.steps.end(), found->steps.begin(), found->steps.end());
      PlannedRedistribution by_sums = priced(std::move(list));
      const int64_t limit = options_.max_memory_bytes;
      if (by_sums.totals.predicted_ps >= best_ps ||
          (limit > 0 && by_sums.totals.peak_bytes > limit))
        continue;
      best_ps = by_sums.totals.predicted_ps;
      best = std::move(by_sums);
      filled = std::move(state);
    }
    if (!best) return std::nullopt;
    return zeros_save(meshes_, topology_, *q_.planned, filled, *best);
  }
  // That a box on the way may have.
  [[nodiscard]] int64_t most_elements(const Mesh& mesh) const {
    if (options_.max_memory_bytes != 0) return INT64_MAX;
    const std::vector<int64_t> sizes = mesh_shape(mesh);
    return std::max(largest_elements(request_.src, request_.tensor.shape, sizes),
                    largest_elements(request_.dst, request_.tensor.shape, sizes));
  }

  Result<StepList> best_steps(const PlanQuestion& question, const WhatIf& what_if) {
    return work::on_share(budget_, work::audit_percent, [&](work::Budget& share) {
      return plan_optimal(question, *q_.levels, share, what_if);
    });
  }
  [[nodiscard]] PlannedRedistribution priced(StepList list) const {
    return priced_steps(meshes_, topology_, request_, std::move(list));
  }

  const AuditQuestion& q_;
  const MeshTable& meshes_;
  const Topology& topology_;
  const PlanOptions& options_;
  const Request& request_;
  work::Budget& budget_;
};

}  // namespace

std::vector<AuditFinding> audit_plan(const AuditQuestion& question, work::Budget& budget) {
  return PlanAudit(question, budget).run();
}

}  // namespace meshplan
