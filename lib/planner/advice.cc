#include "planner/advice.h"

#include <algorithm>
#include <map>

#include "base/int_math.h"
#include "base/text.h"
#include "cost/step_cost.h"
#include "planner/planner.h"
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

namespace {

int64_t file_ps(const MeshTable& meshes, const Topology& topology,
                const std::vector<Request>& requests, const PlanOptions& options,
                work::Budget& budget) {
  PlanOptions quiet = options;
  quiet.audit = false;
  quiet.advice = false;
  quiet.alternatives = 0;
  PlanOutcome outcome = plan_requests(meshes, topology, requests, quiet, "");
  budget.spend(outcome.work);
  return outcome.plan.totals.predicted_ps;
}

struct Candidate {
  std::string mesh;
  std::vector<std::string> dims;
};

MeshTable with_declared(const MeshTable& meshes, const std::vector<Candidate>& sets) {
  MeshTable more = meshes;
  for (const Candidate& c : sets) {
    // A name of its own: an existing flatten of that name has another layout.
    std::string name = join(c.dims, "_");
    while (!declare_flatten(more, c.mesh, c.dims, name)) name += "_";
  }
  return more;
}

}  // namespace

FlattenRanking rank_flattens(const MeshTable& meshes, const Topology& topology,
                             const std::vector<Request>& requests, const PlanOptions& options,
                             int64_t most) {
  FlattenRanking ranking;
  PlanOptions with_advice = options;
  with_advice.advice = true;
  PlanOutcome base = plan_requests(meshes, topology, requests, with_advice, "");
  work::Budget budget{saturating_mul(options.work_budget, static_cast<int64_t>(requests.size()))};
  ranking.declared_ps = base.plan.totals.predicted_ps;
  std::vector<Candidate> candidates;
  for (const PlannedRedistribution& r : base.plan.redistributions) {
    for (const Warning& w : r.warnings) {
      if (w.kind != WarningKind::missing_flatten || w.fix_name.empty()) continue;
      bool known = std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return c.mesh == w.mesh && c.dims == w.dims;
      });
      if (!known) candidates.push_back({w.mesh, w.dims});
    }
  }
  // All choices of up to `most` candidates, where planning them all stays affordable.
  const size_t n = candidates.size();
  const auto k =
      static_cast<size_t>(std::max<int64_t>(0, std::min<int64_t>(most, static_cast<int64_t>(n))));
  constexpr size_t affordable = 256;
  size_t choices = 0;
  for (size_t size = 1, ways = n; size <= k; ++size) {
    choices += ways;
    if (choices > affordable) break;
    ways = ways * (n - size) / (size + 1);
  }
  std::vector<Candidate> chosen;
  const int64_t a_plan = std::max<int64_t>(base.work, work::step);
  if (choices <= affordable && n < 60 &&
      saturating_mul(static_cast<int64_t>(choices), a_plan) <= budget.left) {
    int64_t best = ranking.declared_ps;
    for (uint64_t pick = 1; pick < uint64_t{1} << n; ++pick) {
      if (static_cast<size_t>(__builtin_popcountll(pick)) > k) continue;
      std::vector<Candidate> sets;
      for (size_t i = 0; i < n; ++i) {
        if ((pick >> i & 1) != 0) sets.push_back(candidates[i]);
      }
      int64_t ps = file_ps(with_declared(meshes, sets), topology, requests, options, budget);
      // Fewer groups win a tie: each is a communicator to create.
      if (ps < best || (ps == best && sets.size() < chosen.size())) {
        best = ps;
        chosen = std::move(sets);
      }
    }
  } else {
    ranking.exhaustive = false;
    chosen = candidates;
  }
  // Order the choice by what each adds, the largest first; where not every choice was planned this
  // picks the k as well.
  std::vector<Candidate> declared;
  int64_t now = ranking.declared_ps;
  while (!chosen.empty() && declared.size() < k) {
    size_t best = chosen.size();
    int64_t best_ps = now;
    for (size_t i = 0; i < chosen.size(); ++i) {
      std::vector<Candidate> sets = declared;
      sets.push_back(chosen[i]);
      if (budget.used_up()) break;
      int64_t ps = file_ps(with_declared(meshes, sets), topology, requests, options, budget);
      if (ps < best_ps || (ps == best_ps && best == chosen.size() && ranking.exhaustive)) {
        best = i;
        best_ps = ps;
      }
    }
    if (best == chosen.size()) break;
    declared.push_back(chosen[best]);
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(best));
    now = best_ps;
    ranking.chosen.push_back({declared.back().mesh, declared.back().dims, now});
  }
  return ranking;
}

}  // namespace meshplan
