#include "search/optimal.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/int_math.h"
#include "cost/step_figures.h"
#include "search/across.h"
#include "search/coarser.h"
#include "search/edge_steps.h"
#include "search/exchange_step.h"
#include "search/joining_sums.h"
#include "search/moves.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// Of a question's work what it may take at least to say which limit would be enough.
constexpr int64_t least_peak_percent = 25;

// P(sum) to P(max) on one mesh dim: no step turns a pending reduction into one of another kind.
Status check_kinds(const Request& request, const Mesh& mesh) {
  if (request.src_mesh != request.dst_mesh) return Done{};
  for (const PendingSubAxis& from : request.src.partial) {
    for (const PendingSubAxis& to : request.dst.partial) {
      if (from.sub_axis.mesh_dim != to.sub_axis.mesh_dim || from.sub_axis.size == 1 ||
          may_mix(from.op, to.op))
        continue;
      return no_plan("nothing turns " + to_text(partial(from.op)) + " into " +
                     to_text(partial(to.op)) + " on mesh dim '" +
                     mesh.dims[static_cast<size_t>(from.sub_axis.mesh_dim)].name +
                     "': reduce to R first, as a redistribution of its own");
    }
  }
  return Done{};
}

// A set with a mesh dim that has no sub-axis, such as one of size 1, is no group of the problem's.
void declare(PlanProblem& p, const std::vector<std::vector<size_t>>& sets) {
  for (const auto& set : sets) {
    unsigned mask = 0;
    const bool whole = std::all_of(set.begin(), set.end(), [&](size_t dim) {
      const unsigned before = mask;
      for (int i = 0; i < p.sub_axes; ++i) {
        if (static_cast<size_t>(p.sub_axis[static_cast<size_t>(i)].mesh_dim) == dim)
          mask |= 1U << i;
      }
      return mask != before;
    });
    if (whole) p.allowed[mask] = 1;
  }
}

Found find_with(PlanProblem& p, const std::vector<std::vector<size_t>>& also_declared,
                const SearchOptions& search) {
  if (also_declared.empty()) return find_cheapest(p, search);
  std::vector<uint8_t> allowed = p.allowed;
  declare(p, also_declared);
  Found found = find_cheapest(p, search);
  p.allowed = std::move(allowed);
  return found;
}

// More sub-axes or tensor dims than a search holds: one exchange, which always runs.
StepList one_exchange(const Request& request, const LevelMap& levels) {
  const State landing = landing_of(request);
  StepList list;
  list.dst = request.dst;
  list.steps.push_back(
      make_exchange_step(levels, levels.mesh(), request, request.src, landing, nearest_in_one_phase)
          .step);
  add_partials(request, levels.mesh(), landing, list.steps);
  return list;
}

// The targets of a request, those first that may be reached for the least. `shortcuts`: whether
// some are left out.
struct Target {
  State state;
  int64_t bound_ps = 0;
};
std::vector<Target> targets_of(const PlanQuestion& question, const LevelMap& levels,
                               work::Budget& budget, Shortcuts& shortcuts) {
  const Request& request = *question.request;
  if (!request.any_dst_order) return {{request.dst, 0}};
  std::vector<Target> targets;
  for (State& state : all_orders(request.dst, most_orders))
    targets.push_back({std::move(state), 0});
  if (targets.size() == most_orders) shortcuts.add(Shortcut::few_orders);
  for (Target& target : targets) {
    const auto problem = make_problem(levels, question, request, target.state);
    if (!problem) break;
    budget.spend(work::problem);
    target.bound_ps = bound_between(*problem, problem->source, problem->target).ps;
  }
  std::stable_sort(targets.begin(), targets.end(),
                   [](const Target& a, const Target& b) { return a.bound_ps < b.bound_ps; });
  return targets;
}

// The problem of one target: the one that searches of the question share, or, as most are asked
// once, one without a memory of its own.
class AskedProblem {
 public:
  AskedProblem(const PlanQuestion& question, const LevelMap& levels, const State& target,
               std::shared_ptr<PlanProblem>* known)
      : own_(known != nullptr && *known
                 ? std::optional<PlanProblem>()
                 : make_problem(levels, question, *question.request, target)) {
    if (known == nullptr) return;
    if (own_) *known = std::make_shared<PlanProblem>(*std::move(own_));
    own_.reset();
    shared_ = *known;
  }
  // nullptr: more sub-axes or tensor dims than a search holds.
  [[nodiscard]] PlanProblem* get() { return own_ ? &*own_ : shared_.get(); }

 private:
  std::optional<PlanProblem> own_;
  std::shared_ptr<PlanProblem> shared_;
};

// Looks for the plan of least peak where the search found none, with as much work as that or the
// least share of a question's: it is the answer where it fits.
LeastPeak find_least_peak(const PlanProblem& p, const CoarserForm& coarser,
                          const PlanOptions& options, int64_t search_work, work::Budget& budget,
                          Found& found) {
  const int64_t before = p.work;
  const int64_t least_work = options.work_budget / 100 * least_peak_percent;
  const int64_t most_work = std::max(search_work, least_work);
  LeastPeak least = least_peak(p, most_work);
  LeastPeak coarse = coarser.least_peak(p, most_work);
  const bool proven = least.proven && coarse.proven;
  if (coarse.bytes < least.bytes) least = std::move(coarse);
  least.proven = proven;
  budget.spend(p.work - before);
  if (p.peak_limit == INT64_MAX || least.bytes > p.peak_limit) return least;
  found.exists = true;
  found.edges = least.edges;
  found.cost = cost_of(found.edges);
  if (!found.shortcuts.has(Shortcut::work_budget)) found.least_ps = 0;
  found.shortcuts.add(Shortcut::work_budget);
  return least;
}

}  // namespace

bool may_park_elsewhere(const PlanQuestion& question, const WhatIf& what_if,
                        const Shortcuts& shortcuts) {
  return !question.parks_anywhere && what_if.below_ps == INT64_MAX &&
         shortcuts.has(Shortcut::parking_dims);
}

PlanQuestion wider(const PlanQuestion& question) {
  PlanQuestion asked = question;
  asked.parks_anywhere = true;
  return asked;
}

WhatIf of_wider(const WhatIf& what_if, const LeastPeak& least) {
  return {what_if.also_declared, what_if.below_ps, nullptr, least.bytes};
}

Error nothing_fits(int64_t max_memory_bytes, const LeastPeak& least, const Shortcuts& shortcuts) {
  const std::string limit = "no plan fits max_memory_bytes " + std::to_string(max_memory_bytes);
  if (!least.proven || shortcuts.has(Shortcut::parking_dims))
    return no_plan(limit + " of those that the search had the work to look at: one takes " +
                   std::to_string(least.bytes) +
                   " bytes per rank at its peak; raise the limit to that");
  return no_plan(limit + ": the least peak that exists is " + std::to_string(least.bytes) +
                 " bytes per rank; raise the limit to that");
}

Result<StepList> plan_optimal(const PlanQuestion& question, const LevelMap& levels,
                              work::Budget& budget, const WhatIf& what_if) {
  const Request& request = *question.request;
  const Mesh& mesh = question.meshes->meshes[request.src_mesh];
  if (auto kinds = check_kinds(request, mesh); !kinds) return kinds.error();
  if (request.src_mesh != request.dst_mesh) return plan_across(question, levels, budget, what_if);

  std::optional<StepList> best;
  PlanCost best_cost;
  LeastPeak least;
  least.bytes = what_if.least_peak;
  int64_t least_ps = INT64_MAX;  // of any target
  Shortcuts shortcuts;
  SearchOptions search;
  search.below_ps = what_if.below_ps;
  for (Target& target : targets_of(question, levels, budget, shortcuts)) {
    if (best && target.bound_ps > best_cost.ps) break;
    if (best && budget.used_up()) {
      shortcuts.add(Shortcut::work_budget);
      least_ps = std::min(least_ps, target.bound_ps);
      break;
    }
    AskedProblem asked(question, levels, target.state,
                       request.any_dst_order ? nullptr : what_if.known);
    PlanProblem* const problem = asked.get();
    if (problem == nullptr) {
      Request one = request;
      one.dst = target.state;
      StepList list = one_exchange(one, levels);
      list.shortcuts.add(Shortcut::too_many_axes);
      return list;
    }
    search.work_budget = budget.left;
    const CoarserForm coarser(question, levels, target.state);
    search.coarser = &coarser;
    // Of equal times the fewer collectives count.
    if (best) search.below_ps = std::min(what_if.below_ps, saturating_add(best_cost.ps, 1));
    Found found = find_with(*problem, what_if.also_declared, search);
    budget.spend(found.work + work::problem);
    // What limit would be enough with other sets declared is not told.
    if (!found.exists && search.below_ps == INT64_MAX && what_if.also_declared.empty())
      least.add(
          find_least_peak(*problem, coarser, *question.options, search.work_budget, budget, found));
    shortcuts.add(found.shortcuts);
    least_ps = std::min(least_ps, found.least_ps);
    if (!found.exists || (best && !(found.cost < best_cost))) continue;
    best_cost = found.cost;
    best.emplace();
    best->steps = steps_of_edges(*problem, found.edges, "");
    best->dst = std::move(target.state);
  }
  if (!best && may_park_elsewhere(question, what_if, shortcuts))
    return plan_optimal(wider(question), levels, budget, of_wider(what_if, least));
  if (!best) return nothing_fits(question.options->max_memory_bytes, least, shortcuts);
  best->shortcuts = shortcuts;
  best->least_ps = shortcuts.none() ? best_cost.ps : std::min(least_ps, best_cost.ps);
  return std::move(*best);
}

Result<StepList> plan_optimal(const PlanQuestion& question, const LevelMap& levels) {
  work::Budget budget{question.options->work_budget};
  return plan_optimal(question, levels, budget);
}

Result<StepList> plan_optimal(const PlanQuestion& question) {
  LevelMap levels(question.meshes->meshes[question.request->src_mesh], *question.topology);
  return plan_optimal(question, levels);
}

namespace {

// The first steps of alternatives, those first that may lead to the cheapest plans.
std::vector<Edge> first_hops(const PlanProblem& problem, int64_t most_work) {
  std::vector<Edge> first;
  MoveLimits limits;
  limits.most_work = most_work;
  collective_moves(problem, problem.source, first, limits);
  // No first steps: what makes the target's contributions, which comes last, and what joins others.
  std::erase_if(first, [](const Edge& edge) { return edge.op == Op::to_partial; });
  SearchState landing = problem.target;
  landing.made = 0;
  for (const ExchangeWay way : exchange_ways) {
    if (problem.source == landing || !may_go(problem, problem.source, landing, way)) continue;
    first.push_back(exchange_edge(problem, problem.source, landing, way));
  }
  std::vector<std::pair<int64_t, size_t>> soonest;
  for (size_t i = 0; i < first.size(); ++i)
    soonest.emplace_back(
        saturating_add(first[i].cost.ps, bound_between(problem, first[i].to, problem.target).ps),
        i);
  std::sort(soonest.begin(), soonest.end());
  std::vector<Edge> sorted;
  for (const auto& [bound, number] : soonest) sorted.push_back(first[number]);
  return sorted;
}

// The cheapest `count`. The same states once more, such as by one exchange in two phases, say
// nothing new.
std::vector<Alternative> cheapest(std::vector<Alternative> alternatives,
                                  const PlannedRedistribution& best, int64_t count) {
  std::sort(
      alternatives.begin(), alternatives.end(), [](const Alternative& a, const Alternative& b) {
        auto key = [](const Alternative& x) {
          return std::make_tuple(x.totals.predicted_ps, x.totals.collectives, x.totals.wire_bytes,
                                 x.totals.peak_bytes, std::string_view(x.trace));
        };
        return key(a) < key(b);
      });
  std::vector<Alternative> kept;
  for (Alternative& a : alternatives) {
    const bool known = a.trace == best.trace ||
                       std::any_of(kept.begin(), kept.end(),
                                   [&](const Alternative& k) { return k.trace == a.trace; });
    if (known) continue;
    if (static_cast<int64_t>(kept.size()) == count) break;
    kept.push_back(std::move(a));
  }
  return kept;
}

}  // namespace

std::vector<Alternative> alternative_plans(const PlanQuestion& question, const LevelMap& levels,
                                           const PlannedRedistribution& best, int64_t count,
                                           work::Budget& budget) {
  const Request& request = *question.request;
  if (count <= 0 || request.src_mesh != request.dst_mesh) return {};
  const auto problem = make_problem(levels, question, request, best.dst);
  if (!problem || problem->source == problem->target) return {};
  const std::vector<Edge> first = first_hops(*problem, budget.left / 4);
  budget.spend(problem->work);
  std::vector<Alternative> alternatives;
  for (const Edge& edge : first) {
    if (budget.used_up()) break;
    if (saturating_mul(box_elements(*problem, edge.to), problem->element) > problem->state_limit)
      continue;
    if (problem->peak_limit != INT64_MAX &&
        peak_of(*problem, problem->source, edge) > problem->peak_limit)
      continue;
    PlanProblem rest = *problem;
    rest.source = edge.to;
    SearchOptions search;
    search.work_budget = budget.left;
    Found found = find_cheapest(rest, search);
    budget.spend(found.work + 2 * work::step);
    if (!found.exists) continue;
    std::vector<Edge> edges{edge};
    edges.insert(edges.end(), found.edges.begin(), found.edges.end());
    PlannedRedistribution other;
    other.request = request;
    other.steps = steps_of_edges(*problem, edges, "");
    price_redistribution(other, *question.meshes, levels);
    Alternative a{trace_of(request.src, other.steps, problem->mesh_sizes), other.totals};
    a.totals.lower_bound_bytes = best.totals.lower_bound_bytes;
    a.totals.lower_bound_ps = best.totals.lower_bound_ps;
    if (a.trace == best.trace && a.totals == best.totals) continue;
    // What takes less than the best by no more than joining counts at is not worth its steps.
    const int64_t least_ps = best.totals.predicted_ps - best.proven_gap_ps;
    if (a.totals.predicted_ps < least_ps &&
        saturating_add(a.totals.predicted_ps, most_joining_ps(*problem)) >= least_ps)
      continue;
    if (std::find(alternatives.begin(), alternatives.end(), a) == alternatives.end())
      alternatives.push_back(std::move(a));
  }
  return cheapest(std::move(alternatives), best, count);
}

}  // namespace meshplan
