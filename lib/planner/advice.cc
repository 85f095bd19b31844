#include "planner/advice.h"

#include <algorithm>

#include "base/text.h"
#include "cost/step_cost.h"
#include "search/optimal.h"

namespace meshplan {
namespace {

using DimSet = std::vector<size_t>;

// Up to this many mesh dims every set is tried by itself; beyond it only the sets that the plan
// with everything declared uses.
constexpr size_t all_sets_up_to = 5;

std::vector<DimSet> undeclared_sets(const MeshTable& meshes, const Mesh& mesh) {
  std::vector<size_t> wide;
  for (size_t m = 0; m < mesh.dims.size(); ++m) {
    if (mesh.dims[m].size > 1) wide.push_back(m);
  }
  std::vector<DimSet> sets;
  constexpr size_t most_dims = 12;
  if (wide.size() > most_dims) return sets;
  for (size_t pick = 1; pick < size_t{1} << wide.size(); ++pick) {
    if ((pick & (pick - 1)) == 0) continue;
    DimSet set;
    for (size_t i = 0; i < wide.size(); ++i) {
      if ((pick >> i & 1) != 0) set.push_back(wide[i]);
    }
    if (!find_native_flatten(meshes, mesh, set)) sets.push_back(std::move(set));
  }
  return sets;
}

DimSet dims_of(const Step& step) {
  DimSet set;
  for (const Atom& a : step.mesh_dims) set.push_back(static_cast<size_t>(a.mesh_dim));
  return set;
}

PlannedRedistribution priced_with(const PlanQuestion& question, const LevelMap& levels,
                                  const std::vector<DimSet>& declared, int64_t below_ps,
                                  work::Budget& budget) {
  PlannedRedistribution other;
  other.request = *question.request;
  auto list = plan_optimal(question, levels, budget, {declared, below_ps});
  if (!list) {
    other.totals.predicted_ps = INT64_MAX;
    return other;
  }
  other.steps = std::move(list->steps);
  price_redistribution(other, *question.meshes, levels);
  return other;
}

}  // namespace

std::vector<Warning> missing_flattens(const PlanQuestion& question, const LevelMap& levels,
                                      const PlannedRedistribution& planned, work::Budget& budget) {
  std::vector<Warning> warnings;
  const Request& request = *question.request;
  if (question.options->groups == GroupPolicy::any || request.src_mesh != request.dst_mesh ||
      planned.totals.collectives == 0)
    return warnings;
  const Mesh& mesh = question.meshes->meshes[request.src_mesh];
  std::vector<DimSet> sets = undeclared_sets(*question.meshes, mesh);
  if (sets.empty() || planned.totals.predicted_ps == planned.totals.lower_bound_ps) return warnings;
  PlannedRedistribution most =
      work::on_share(budget, work::everything_percent, [&](work::Budget& share) {
        return priced_with(question, levels, sets, planned.totals.predicted_ps, share);
      });
  if (most.totals.predicted_ps >= planned.totals.predicted_ps) return warnings;
  size_t wide = 0;
  for (const MeshDim& d : mesh.dims) wide += d.size > 1;
  if (wide > all_sets_up_to) {
    std::erase_if(sets, [&](const DimSet& set) {
      return std::none_of(most.steps.begin(), most.steps.end(),
                          [&](const Step& s) { return s.op != Op::exchange && dims_of(s) == set; });
    });
  }
  for (const DimSet& set : sets) {
    if (budget.used_up()) break;
    PlannedRedistribution with =
        priced_with(question, levels, {set}, planned.totals.predicted_ps, budget);
    if (with.totals.predicted_ps >= planned.totals.predicted_ps) continue;
    auto used = std::find_if(with.steps.begin(), with.steps.end(), [&](const Step& s) {
      return s.op != Op::exchange && !is_local(s.op) && dims_of(s) == set;
    });
    if (used == with.steps.end()) continue;
    Warning w;
    w.kind = WarningKind::missing_flatten;
    for (size_t m : set) w.dims.push_back(mesh.dims[m].name);
    w.collective = used->op;
    w.operations = planned.totals.collectives;
    w.saves_ps = planned.totals.predicted_ps - with.totals.predicted_ps;
    w.saves_collectives = planned.totals.collectives - with.totals.collectives;
    w.fix_name = join(w.dims, "_");
    w.mesh = mesh.name;
    w.message = std::string("one ") + to_text(w.collective) + " over " + join(w.dims, ", ") +
                " would be cheaper than the " + std::to_string(w.operations) +
                (w.operations == 1 ? " step" : " steps") + " planned: declare " + w.fix_name +
                " flattened; saves " + human_ns(w.saves_ps / 1000);
    warnings.push_back(std::move(w));
  }
  return warnings;
}

}  // namespace meshplan
