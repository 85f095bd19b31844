#include "planner/flatten_prices.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/int_math.h"
#include "cost/step_cost.h"
#include "plan/step_mesh.h"
#include "search/optimal.h"
#include "torch_rules/rule_planner.h"

namespace meshplan {
namespace {

constexpr size_t most_candidates = 64;
// Of more mesh dims only the sets that the plan with everything declared uses are tried.
constexpr size_t all_sets_up_to = 5;

bool cheaper(const Totals& a, const Totals& b) {
  return std::pair(a.predicted_ps, a.collectives) < std::pair(b.predicted_ps, b.collectives);
}

}  // namespace

struct FlattenPrices::Question {
  Request request;  // the target normalised
  int64_t times = 0;
  work::Budget budget;
  work::Budget settling;  // of searches that go as far as the planner's
  LeftForAdvice left;
  bool finding = false;     // its candidates, in searches that share
  bool found = false;       // they are known
  int64_t least_ps = 0;     // no sets make it take less
  FlattenSets visible = 0;  // candidates that may change its plan
  std::map<FlattenSets, FlattenedPlan> known;
  std::optional<FlattenedPlan> with_all;  // every set of the mesh
  std::vector<DimSet> useless;            // by themselves
  [[nodiscard]] bool crosses() const { return request.src_mesh != request.dst_mesh; }
};

FlattenPrices::FlattenPrices(const MeshTable& meshes, const Topology& topology,
                             const PlanOptions& options, PlanInFile plan_in_file)
    : meshes_(meshes),
      topology_(topology),
      options_(options),
      plan_in_file_(std::move(plan_in_file)) {}

FlattenPrices::~FlattenPrices() = default;

const LevelMap& FlattenPrices::levels_of(size_t mesh) {
  auto [found, fresh] = levels_.try_emplace(mesh);
  if (fresh) found->second = std::make_unique<LevelMap>(meshes_.meshes[mesh], topology_);
  return *found->second;
}

const MeshTable& FlattenPrices::table_with(FlattenSets sets) {
  auto [found, fresh] = tables_.try_emplace(sets);
  if (fresh) {
    found->second = meshes_;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if ((sets & set_of(i)) == 0) continue;
      const FlattenCandidate& candidate = candidates_[i];
      const auto name = declare_set(found->second, meshes_.meshes[candidate.mesh], candidate.dims);
      MESHPLAN_CHECK(name.has_value(), "a flatten that could be declared cannot be any more");
    }
  }
  return found->second;
}

// The dims of another mesh that have its ranks.
std::optional<DimSet> FlattenPrices::on_mesh(const FlattenCandidate& candidate, size_t mesh) const {
  if (candidate.mesh == mesh) return candidate.dims;
  const Mesh& from = meshes_.meshes[candidate.mesh];
  const Mesh& to = meshes_.meshes[mesh];
  if (from.universe != to.universe) return std::nullopt;
  const Layout layout = group_layout(from, candidate.dims);
  for (DimSet& set : sets_of_dims(to)) {
    if (has_same_offsets(group_layout(to, set), layout)) return std::move(set);
  }
  return std::nullopt;
}

size_t FlattenPrices::add(const PlannedRedistribution& planned, int64_t times, LeftForAdvice left) {
  Question question;
  question.request = planned.request;
  question.request.dst =
      effective_target(planned.request, mesh_shape(meshes_.meshes[planned.request.src_mesh]));
  question.times = times;
  question.budget.left = left.work;
  question.settling.left = left.work / work::advice_percent * work::settling_percent;
  question.left = std::move(left);
  question.known[0] = {planned.totals, planned.steps};
  question.least_ps = planned.totals.predicted_ps;
  questions_.push_back(std::move(question));
  if (questions_.back().left.problem) find_once(questions_.back());
  return questions_.size() - 1;
}

void FlattenPrices::set_times(size_t question, int64_t times) {
  questions_[question].times = times;
}

size_t FlattenPrices::questions() const { return questions_.size(); }

int64_t FlattenPrices::times(size_t question) const { return questions_[question].times; }

// The cheapest plan that takes less; none: there is none, or the work did not suffice to find one.
std::optional<FlattenedPlan> FlattenPrices::search(Question& question,
                                                   const std::vector<DimSet>& also_declared,
                                                   FlattenSets sets, int64_t below_ps,
                                                   work::Budget& budget) {
  if (budget.used_up()) return std::nullopt;
  const MeshTable& meshes = question.crosses() ? table_with(sets) : meshes_;
  // What was listed for one question is not for the next, so that each takes the same work whatever
  // was asked before it.
  const size_t mesh = question.request.src_mesh;
  const LevelMap& levels =
      question.left.levels != nullptr ? *question.left.levels : levels_of(mesh);
  levels.remember_listings(question.left.listings);
  const PlanQuestion asked{&meshes, &topology_, &question.request, &options_};
  const int64_t before = budget.left;
  auto* known = question.finding ? &question.left.problem : nullptr;
  auto list = plan_optimal(asked, levels, budget, {also_declared, below_ps, known});
  work_ += before - budget.left;
  question.left.listings = levels.shared_listings();
  if (!list) return std::nullopt;
  FlattenedPlan plan = priced(question, meshes, std::move(list->steps));
  if (plan.totals.predicted_ps >= below_ps) return std::nullopt;
  return plan;
}

FlattenedPlan FlattenPrices::priced(const Question& question, const MeshTable& meshes,
                                    std::vector<Step> steps) {
  PlannedRedistribution planned;
  planned.request = question.request;
  planned.steps = std::move(steps);
  price_redistribution(planned, meshes, levels_of(question.request.src_mesh));
  return {planned.totals, planned.steps};
}

bool FlattenPrices::plan_with_all(Question& question, const std::vector<DimSet>& sets) {
  if (question.left.with_every_set) {
    question.budget.spend(question.left.every_set_work);
    FlattenedPlan plan = priced(question, meshes_, *std::move(question.left.with_every_set));
    if (plan.totals.predicted_ps < question.least_ps) question.with_all = std::move(plan);
    return true;
  }
  bool ended = false;
  question.with_all =
      work::on_share(question.budget, work::everything_percent, [&](work::Budget& share) {
        auto plan = search(question, sets, 0, question.least_ps, share);
        ended = !share.used_up();
        return plan;
      });
  return ended;
}

std::vector<DimSet> FlattenPrices::sets_to_try(Question& question) {
  const size_t number = question.request.src_mesh;
  const Mesh& mesh = meshes_.meshes[number];
  const auto [found, fresh] = undeclared_.try_emplace(number);
  if (fresh) found->second = undeclared_sets(meshes_, mesh);
  std::vector<DimSet> sets = found->second;
  if (sets.empty()) return sets;
  const int64_t before = question.budget.left;
  const bool ended = plan_with_all(question, sets);
  // A search that did not end says nothing of what sets bring.
  if (!ended) question.least_ps = question.known[0].totals.lower_bound_ps;
  if (!question.with_all) return {};
  question.with_all->settled = ended;
  if (ended) question.least_ps = question.with_all->totals.predicted_ps;
  // Each is a search like that one.
  const int64_t each = before - question.budget.left;
  const bool too_many =
      saturating_mul(each, std::ssize(sets)) > question.budget.left / 100 * work::sets_percent;
  if (too_many || wide_dims(mesh).size() > all_sets_up_to) {
    const std::vector<Step>& steps = std::as_const(question.with_all->steps).list();
    std::erase_if(sets, [&](const DimSet& set) {
      return std::none_of(steps.begin(), steps.end(), [&](const Step& step) {
        return step.op != Op::exchange && dims_of(step) == set;
      });
    });
  }
  return sets;
}

void FlattenPrices::add_candidate(Question& question, const DimSet& set, FlattenedPlan plan) {
  const size_t mesh = question.request.src_mesh;
  size_t number = 0;
  while (number < candidates_.size() && on_mesh(candidates_[number], mesh) != set) ++number;
  if (number == most_candidates) return;
  if (number == candidates_.size()) {
    MeshTable all = table_with(set_of(number) - 1);
    auto name = declare_set(all, meshes_.meshes[mesh], set);
    MESHPLAN_CHECK(name.has_value(), "a flatten that could be declared cannot be any more");
    candidates_.push_back({mesh, set, *std::move(name)});
  }
  question.known[set_of(number)] = std::move(plan);
}

void FlattenPrices::find_candidates(Question& question) {
  const Totals now = question.known[0].totals;
  if (question.left.none_missing || question.crosses() || now.collectives == 0 ||
      now.predicted_ps == now.lower_bound_ps)
    return;
  const std::vector<DimSet> sets = sets_to_try(question);
  const int64_t kept = question.budget.left / 100 * (100 - work::sets_percent);
  for (const DimSet& set : sets) {
    if (question.budget.left <= kept) return;
    // The best plan with every set declared that runs on this one alone is the best with it.
    auto plan = question.with_all->settled && runs_on_set(question, *question.with_all, set)
                    ? question.with_all
                    : search(question, {set}, 0, now.predicted_ps, question.budget);
    const bool used =
        plan && std::any_of(plan->steps.begin(), plan->steps.end(), [&](const Step& step) {
          return runs_on_group(step) && dims_of(step) == set;
        });
    if (used) {
      add_candidate(question, set, *std::move(plan));
    } else {
      question.useless.push_back(set);
    }
  }
}

void FlattenPrices::find_once(Question& question) {
  if (std::exchange(question.found, true)) return;
  question.finding = true;
  find_candidates(question);
  question.finding = false;
  question.left.problem.reset();
  question.left.levels = nullptr;
}

void FlattenPrices::find_candidates() {
  for (Question& question : questions_) find_once(question);
  for (Question& question : questions_) {
    const size_t mesh = question.request.src_mesh;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const auto set = on_mesh(candidates_[i], mesh);
      const bool after = question.crosses() && on_mesh(candidates_[i], question.request.dst_mesh);
      if (!set && !after) continue;
      question.visible |= set_of(i);
      if (set && std::find(question.useless.begin(), question.useless.end(), *set) !=
                     question.useless.end())
        question.known.emplace(set_of(i), question.known[0]);
    }
    if (!question.crosses() || question.visible == 0) continue;
    const Totals now = question.known[0].totals;
    if (auto plan = search(question, {}, question.visible, now.predicted_ps, question.budget)) {
      question.least_ps = plan->totals.predicted_ps;
      question.known[question.visible] = *std::move(plan);
    }
  }
}

bool FlattenPrices::runs_with(const Question& question, const FlattenedPlan& plan,
                              FlattenSets sets) {
  const MeshTable& meshes = table_with(sets);
  return std::all_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    return runs_as_declared(meshes, mesh_after(meshes_, question.request, step), step);
  });
}

bool FlattenPrices::runs_on_set(const Question& question, const FlattenedPlan& plan,
                                const DimSet& set) const {
  const Mesh& mesh = meshes_.meshes[question.request.src_mesh];
  return std::all_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    return dims_of(step) == set || runs_as_declared(meshes_, mesh, step);
  });
}

FlattenedPlan FlattenPrices::best_with(Question& question, FlattenSets sets, Effort effort) {
  FlattenedPlan best = question.known[0];
  bool is_least = best.totals.predicted_ps <= question.least_ps;
  const auto consider = [&](const FlattenedPlan& plan, bool with_more) {
    if (!cheaper(plan.totals, best.totals) || !runs_with(question, plan, sets)) return;
    best = plan;
    is_least = with_more || plan.totals.predicted_ps <= question.least_ps;
  };
  for (const auto& [others, plan] : question.known)
    consider(plan, plan.settled && (sets & ~others) == 0);
  if (question.with_all) consider(*question.with_all, question.with_all->settled);
  best.settled = true;
  if (is_least) return best;
  std::vector<DimSet> declared;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if ((sets & set_of(i)) == 0) continue;
    if (auto set = on_mesh(candidates_[i], question.request.src_mesh))
      declared.push_back(*std::move(set));
  }
  if (effort == Effort::rough) {
    if (auto plan = search(question, declared, sets, best.totals.predicted_ps, question.budget))
      best = *std::move(plan);
    best.settled = !question.budget.used_up();
    return best;
  }
  const int64_t own = options_.work_budget / 100 * work::settling_percent;
  work::Budget share{std::min(own, question.settling.left)};
  const int64_t given = share.left;
  if (auto plan = search(question, declared, sets, best.totals.predicted_ps, share))
    best = *std::move(plan);
  question.settling.spend(given - share.left);
  best.settled = given == own || !share.used_up();
  return best;
}

const FlattenedPlan& FlattenPrices::plan_with(size_t question, FlattenSets sets, Effort effort) {
  Question& asked = questions_[question];
  sets &= asked.visible;
  if (asked.known[0].totals.predicted_ps <= asked.least_ps) return asked.known[0];
  const auto found = asked.known.find(sets);
  const bool enough = effort == Effort::rough || asked.settling.used_up();
  if (found != asked.known.end() && (enough || found->second.settled)) return found->second;
  return asked.known[sets] = best_with(asked, sets, effort);
}

std::optional<FlattenedPlan> FlattenPrices::plan_in_file(size_t question, FlattenSets sets) {
  const Question& asked = questions_[question];
  if (!plan_in_file_ || (sets & asked.visible) == 0) return std::nullopt;
  return plan_in_file_(table_with(sets), asked.request);
}

const Step* FlattenPrices::step_on(size_t question, const FlattenedPlan& plan,
                                   size_t candidate) const {
  const FlattenCandidate& on = candidates_[candidate];
  const Mesh& mesh = meshes_.meshes[on.mesh];
  for (const Step& step : plan.steps) {
    if (!runs_on_group(step)) continue;
    const Mesh& its = mesh_after(meshes_, questions_[question].request, step);
    if (its.universe == mesh.universe &&
        has_same_offsets(group_layout(its, dims_of(step)), group_layout(mesh, on.dims)))
      return &step;
  }
  return nullptr;
}

}  // namespace meshplan
