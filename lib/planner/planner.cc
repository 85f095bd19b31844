#include "planner/planner.h"

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/int_math.h"
#include "base/text.h"
#include "cost/bounds.h"
#include "cost/step_cost.h"
#include "planner/advice.h"
#include "planner/cheaper_rules.h"
#include "planner/numerics.h"
#include "planner/plan_audit.h"
#include "planner/plan_bundle.h"
#include "planner/plan_groups.h"
#include "planner/priced_steps.h"
#include "planner/question_key.h"
#include "planner/rank_flattens.h"
#include "planner/without_limit.h"
#include "search/optimal.h"
#include "search/work.h"
#include "torch_rules/rule_planner.h"
#include "verify/bundle.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

std::string saved_text(const Warning& warning) {
  if (warning.saves_ns <= 0) return "; it costs no less here";
  return "; saves " + human_ns(warning.saves_ns) + " and " +
         counted(warning.saves_collectives, "collective");
}

// The most ranks of a mesh that units of some level cut unevenly.
constexpr int64_t most_uneven_ranks = 1'048'576;

void check_claims(const Plan& plan, const PlannedRedistribution& planned) {
  const Status claims = verify_claims(plan, planned);
  MESHPLAN_CHECK(claims.ok(), "a plan claims what cannot be: " + claims.error().message);
}

// A search that left nothing out takes its plan's price for the least that there is: the one that
// the steps have by themselves.
void check_price(const PlannedRedistribution& planned, int64_t searched_ps) {
  MESHPLAN_CHECK(planned.totals.predicted_ps == searched_ps,
                 "the search counted " + std::to_string(searched_ps) + " ps for steps that take " +
                     std::to_string(planned.totals.predicted_ps) + " ps: " + planned.trace);
}

// One file's planning: the passes in their order, and what they share.
class Pipeline {
 public:
  Pipeline(const MeshTable& meshes, const Topology& topology, const PlanOptions& options,
           Plan& plan)
      : meshes_(meshes),
        topology_(topology),
        options_(options),
        searched_meshes_(&meshes),
        searched_options_(options),
        plan_(plan),
        groups_(meshes) {}

  // From now on the search takes what this table declares, and nothing else, for groups.
  void search_on(const MeshTable& declared) {
    searched_meshes_ = &declared;
    searched_options_.groups = GroupPolicy::declared;
  }

  // Plans, names, prices and proves one question. `left`: for advice, where that is wanted.
  Result<PlannedRedistribution> answer(const Request& request, LeftForAdvice& left) {
    const Mesh& mesh = meshes_.meshes[request.src_mesh];
    for (const size_t m : {request.src_mesh, request.dst_mesh}) {
      if (auto few = check_units(levels_of(m)); !few) return few.error();
    }
    PlannedRedistribution planned;
    planned.request = request;
    planned.planner = options_.planner;
    planned.rules = options_.rules;

    Request effective = request;
    effective.dst = effective_target(request, mesh_shape(mesh));
    levels_of(request.src_mesh).forget_listings();
    const PlanQuestion question{searched_meshes_, &topology_, &effective, &searched_options_};
    std::optional<RuleAnswer> rules;
    work::Budget budget{options_.work_budget};
    auto found = steps_for(question, rules, budget, left);
    if (!found) return found.error();
    StepList list = *std::move(found);
    if (rules) planned.planner = rules->planner;
    planned.dst = list.dst;
    planned.steps = std::move(list.steps);
    planned.warnings = std::move(list.warnings);
    planned.trace = trace_of(request.src, planned.steps, mesh, meshes_.meshes[request.dst_mesh]);
    planned.unmerged_trace =
        list.unmerged_trace.empty() ? planned.trace : std::move(list.unmerged_trace);

    groups_.name_groups(planned);
    price_redistribution(planned, meshes_, levels_of(request.src_mesh));
    if (!rules && list.shortcuts.none()) check_price(planned, list.least_ps);
    Bounds bounds;  // of what takes nothing: 0
    if (planned.totals.predicted_ps > 0 || planned.totals.wire_bytes > 0)
      bounds = lower_bounds(effective, meshes_, levels_of(request.src_mesh));
    planned.totals.lower_bound_bytes = bounds.bytes;
    planned.totals.lower_bound_ps = bounds.ps;
    planned.proven_gap_ps =
        gap_ps(planned.totals.predicted_ps, list.least_ps, bounds.ps, list.shortcuts);
    if (planned.proven_gap_ps > 0) planned.shortcuts = list.shortcuts;
    planned.reductions = reduction_notes(request.src, planned.steps, mesh);
    if (auto allowed = check_limits(planned); !allowed) return allowed.error();
    if (rules) {
      value_warnings(question, *rules, planned);
    } else {
      if (options_.advice) {
        left.work = budget.left / 100 * work::advice_percent;
        left.listings = levels_of(request.src_mesh).shared_listings();
      }
      budget.spend(left.work);
      add_alternatives(question, planned, budget);
    }
    if (options_.audit) planned.audit = audit(question, rules, planned, budget);

    prove(planned);
    return planned;
  }

  // The plan's redistributions are all there; those of members become what their bundle runs.
  void add_bundles(const std::vector<BundleRequest>& bundles, std::vector<PlanFailure>& failures) {
    for (size_t b = 0; b < bundles.size(); ++b) {
      auto planned =
          plan_bundle(plan_, bundles[b], groups_, [&](auto& made) { return proof_of(made); });
      if (!planned) {
        failures.push_back({bundles[b].members.front(), planned.error(), b});
        continue;
      }
      plan_.bundles.push_back(std::move(planned).value());
    }
  }

  void count_use(const PlannedRedistribution& planned, int64_t times) {
    groups_.count_use(planned, times);
  }
  [[nodiscard]] std::vector<PlanGroup> groups() const { return groups_.groups(); }
  [[nodiscard]] int64_t work() const { return work_; }
  // Whether missing flattens are looked for.
  [[nodiscard]] bool advises() const {
    return options_.advice && options_.planner == PlannerKind::optimal &&
           options_.groups == GroupPolicy::declared;
  }

 private:
  // Of the planner that the options name; `rules`: what PyTorch's rules gave, where they planned.
  Result<StepList> steps_for(const PlanQuestion& question, std::optional<RuleAnswer>& rules,
                             work::Budget& budget, LeftForAdvice& left) {
    if (options_.planner == PlannerKind::optimal) {
      auto found = cheapest_found(question, budget, left);
      if (asks_without_limit(question, found)) {
        const PlanOptions options = without_limit(*question.options);
        PlanQuestion freely = question;
        freely.options = &options;
        levels_of(question.request->src_mesh).forget_listings();
        work::Budget all{options.work_budget};
        LeftForAdvice unused;
        take_within_limit(question, cheapest_found(freely, all, unused), found);
      }
      return found;
    }
    auto found = rule_transitions(question);
    if (!found) return found.error();
    rules = *std::move(found);
    return merged_steps(question, *rules);
  }

  // By the search, or by PyTorch's rules where it proves nothing and they are cheaper.
  Result<StepList> cheapest_found(const PlanQuestion& question, work::Budget& budget,
                                  LeftForAdvice& left) {
    const int64_t before = budget.left;
    auto found = work::on_share(budget, work::search_percent, [&](work::Budget& share) {
      return searched(question, share, left);
    });
    work_ += before - budget.left;
    const Request& request = *question.request;
    if (found && request.src_mesh == request.dst_mesh &&
        (!found->shortcuts.none() || makes_sums(request)))
      take_cheaper_rules(question, levels_of(request.src_mesh), *found);
    return found;
  }

  Result<StepList> searched(const PlanQuestion& question, work::Budget& budget,
                            LeftForAdvice& left) {
    const size_t mesh = question.request->src_mesh;
    const auto [undeclared, fresh] = undeclared_.try_emplace(mesh);
    if (fresh && advises()) undeclared->second = undeclared_sets(meshes_, meshes_.meshes[mesh]);
    return plan_widest_first(question, levels_of(mesh), undeclared->second, budget, left);
  }

  // Of a searched plan.
  void add_alternatives(const PlanQuestion& question, PlannedRedistribution& planned,
                        work::Budget& budget) {
    const LevelMap& levels = levels_of(planned.request.src_mesh);
    const int64_t before = budget.left;
    planned.alternatives =
        work::on_share(budget, work::alternatives_percent, [&](work::Budget& share) {
          return alternative_plans(question, levels, planned, options_.alternatives, share);
        });
    work_ += before - budget.left;
  }

  void prove(const PlannedRedistribution& planned) {
    plan_.groups = groups_.groups();
    const Status proof = verify_redistribution(plan_, planned);
    MESHPLAN_CHECK(proof.ok(), "a plan failed its own verification, " + planned.trace + ": " +
                                   proof.error().message);
    const auto counted = verify_figures(plan_, planned);
    MESHPLAN_CHECK(counted.ok(),
                   "a plan's figures are not what its steps give: " + counted.error().message);
    check_claims(plan_, planned);
  }

  // Of a bundle, and before it of what its members run; an error where that takes too much.
  Status proof_of(const PlannedBundle& planned) {
    const Step* proven = nullptr;
    for (const size_t member : planned.request.members) {
      const PlannedRedistribution& r = plan_.redistributions[member];
      if (r.steps.empty() || std::exchange(proven, &r.steps.front()) == &r.steps.front()) continue;
      prove(r);
    }
    const auto proof = verify_bundle(plan_, planned);
    MESHPLAN_CHECK(proof || proof.error().fault == Fault::environment,
                   "a bundle failed its own verification: " + proof.error().message);
    return proof ? Status(Done{}) : proof.error();
  }

  const LevelMap& levels_of(size_t mesh) {
    auto [found, fresh] = levels_.try_emplace(mesh);
    if (fresh) found->second = std::make_unique<LevelMap>(meshes_.meshes[mesh], topology_);
    return *found->second;
  }

  // Groups that units cut unevenly are listed member by member.
  static Status check_units(const LevelMap& levels) {
    const Mesh& mesh = levels.mesh();
    if (levels.regular() || mesh_size(mesh) <= most_uneven_ranks) return Done{};
    return bad_input(
        "mesh '" + mesh.name + "' has " + with_commas(mesh_size(mesh)) +
        " ranks, and units of topology '" + levels.topology().name + "' cut it unevenly: at most " +
        with_commas(most_uneven_ranks) +
        " ranks are planned so; use levels whose ranks its mesh dims fill evenly, or fewer ranks");
  }

  [[nodiscard]] Status check_limits(const PlannedRedistribution& planned) const {
    if (options_.max_memory_bytes > 0 && planned.totals.peak_bytes > options_.max_memory_bytes) {
      return no_plan(std::string("the ") + to_text(planned.planner) + " plan needs " +
                     std::to_string(planned.totals.peak_bytes) +
                     " bytes per rank at its peak, max_memory_bytes allows " +
                     std::to_string(options_.max_memory_bytes) +
                     "; use --planner optimal or a higher limit");
    }
    if (options_.one_reduction) return check_one_reduction(planned.reductions);
    return Done{};
  }

  // What each missing flatten would save: the same answer merged as if it were declared, priced.
  void value_warnings(const PlanQuestion& question, const RuleAnswer& answer,
                      PlannedRedistribution& planned) const {
    const Mesh& mesh = meshes_.meshes[planned.request.src_mesh];
    for (Warning& warning : planned.warnings) {
      if (warning.kind != WarningKind::missing_flatten) continue;
      std::vector<int32_t> dims;
      for (const std::string& name : warning.dims)
        dims.push_back(static_cast<int32_t>(find_dim(mesh, name).value()));
      const PlannedRedistribution other =
          priced_steps(meshes_, topology_, *question.request, merged_steps(question, answer, dims));
      warning.saves_ns = saved_ns(planned.totals, other.totals);
      warning.saves_collectives = planned.totals.collectives - other.totals.collectives;
      warning.message += saved_text(warning);
    }
  }

  std::vector<AuditFinding> audit(const PlanQuestion& searched,
                                  const std::optional<RuleAnswer>& rules,
                                  const PlannedRedistribution& planned, work::Budget& budget) {
    AuditQuestion question;
    question.asked = {&meshes_, &topology_, searched.request, &options_};
    question.searched = searched;
    question.levels = &levels_of(planned.request.src_mesh);
    question.rules = &rules;
    question.planned = &planned;
    const int64_t before = budget.left;
    std::vector<AuditFinding> findings = audit_plan(question, budget);
    work_ += before - budget.left;
    return findings;
  }

  const MeshTable& meshes_;
  const Topology& topology_;
  const PlanOptions& options_;
  const MeshTable* searched_meshes_;
  PlanOptions searched_options_;
  Plan& plan_;  // what proofs refer to: meshes, topology, groups
  PlanGroups groups_;
  std::map<size_t, std::unique_ptr<LevelMap>> levels_;  // by mesh
  std::map<size_t, std::vector<DimSet>> undeclared_;    // by mesh, for advice
  int64_t work_ = 0;
};

// One question of a file.
struct Answered {
  Result<PlannedRedistribution> answer;
  LeftForAdvice left{};
  int64_t times = 0;               // redistributions that ask it
  std::optional<size_t> number{};  // where advice asks for it, too
};

// Missing flattens of the whole file, without what its bundles run.
void advise(Plan& plan, FlattenPrices& prices, const std::vector<Answered>& answered,
            const std::vector<size_t>& answer_of, const std::vector<bool>& bundled) {
  std::vector<int64_t> times(answered.size(), 0);
  for (size_t i = 0; i < plan.redistributions.size(); ++i) {
    if (!bundled[i])
      times[answer_of[i]] =
          saturating_add(times[answer_of[i]], plan.redistributions[i].request.count);
  }
  for (size_t a = 0; a < answered.size(); ++a) {
    if (answered[a].number) prices.set_times(*answered[a].number, times[a]);
  }
  prices.find_candidates();
  const std::vector<size_t> advised = advised_flattens(plan.meshes, plan.topology, prices);
  std::vector<std::optional<SharedList<Warning>>> warnings(answered.size());
  for (size_t i = 0; i < plan.redistributions.size() && !advised.empty(); ++i) {
    if (bundled[i]) continue;
    auto& known = warnings[answer_of[i]];
    const bool is_new = !known;
    const auto& number = answered[answer_of[i]].number;
    if (is_new) known = missing_flattens(plan.meshes, prices, *number, advised);
    plan.redistributions[i].warnings = *known;
    if (is_new && !known->empty()) check_claims(plan, plan.redistributions[i]);
  }
}

// With groups "any" and max_groups K: the table with the K sets declared that save most.
std::optional<MeshTable> best_of_any(const MeshTable& meshes, const Topology& topology,
                                     const std::vector<Request>& requests,
                                     const PlanOptions& options,
                                     const std::vector<BundleRequest>& bundles, int64_t& work) {
  if (options.planner != PlannerKind::optimal || options.groups != GroupPolicy::any ||
      options.max_groups < 0)
    return std::nullopt;
  const FlattenRanking ranking =
      rank_flattens(meshes, topology, not_bundled(requests, bundles), options, options.max_groups);
  work += ranking.work;
  return with_flattens(meshes, ranking.chosen);
}

// Bundles where everything has a plan, and the groups that the plan uses.
void add_bundles(Pipeline& pipeline, const std::vector<BundleRequest>& bundles,
                 const std::vector<Answered>& answered, PlanOutcome& outcome) {
  Plan& plan = outcome.plan;
  if (bundles.empty() || !outcome.failures.empty()) {
    for (const Answered& entry : answered) {
      if (entry.answer) pipeline.count_use(*entry.answer, entry.times);
    }
  } else {
    pipeline.add_bundles(bundles, outcome.failures);
    for (const PlannedRedistribution& planned : plan.redistributions)
      pipeline.count_use(planned, 1);
  }
  plan.groups = pipeline.groups();
  // Ways that a bundle did not take named some, too.
  if (!bundles.empty())
    std::erase_if(plan.groups, [](const PlanGroup& g) { return g.used_by == 0; });
}

Plan plan_for(const MeshTable& meshes, const Topology& topology, const PlanOptions& options) {
  Plan plan;
  plan.meshes = meshes;
  plan.topology = topology;
  plan.options = options;
  return plan;
}

// Questions that are planned one by one, as in a file of their meshes.
struct OneByOne {
  OneByOne(const MeshTable& meshes, const Topology& topology, const PlanOptions& options)
      : plan(plan_for(meshes, topology, options)), pipeline(meshes, topology, plan.options, plan) {}
  Result<PlannedRedistribution> answer(const Request& request) {
    LeftForAdvice left;
    return pipeline.answer(request, left);
  }
  Plan plan;  // what proofs refer to
  Pipeline pipeline;
};

// How files with other declarations plan: with advice, which leaves searches as much work as there.
PlanInFile plans_in_file(const Topology& topology, PlanOptions options, int64_t& work) {
  options.alternatives = 0;
  options.audit = false;
  return [&topology, options, &work](const MeshTable& meshes, const Request& request) {
    OneByOne file(meshes, topology, options);
    const auto planned = file.answer(request);
    work += file.pipeline.work();
    return planned ? std::optional(FlattenedPlan{planned->totals, planned->steps}) : std::nullopt;
  };
}

}  // namespace

PlanOutcome plan_requests(const MeshTable& meshes, const Topology& topology,
                          const std::vector<Request>& requests, const PlanOptions& options,
                          std::string spec_digest, const std::vector<BundleRequest>& bundles) {
  PlanOutcome outcome;
  Plan& plan = outcome.plan;
  plan = plan_for(meshes, topology, options);
  plan.spec_digest = std::move(spec_digest);
  outcome.failures = refused_bundles(meshes, bundles);
  if (!outcome.failures.empty()) return outcome;
  Pipeline pipeline(meshes, topology, options, plan);
  const std::optional<MeshTable> best_groups =
      best_of_any(meshes, topology, requests, options, bundles, outcome.work);
  if (best_groups) pipeline.search_on(*best_groups);
  std::optional<FlattenPrices> prices;
  if (pipeline.advises())
    prices.emplace(plan.meshes, plan.topology, plan.options,
                   plans_in_file(plan.topology, options, outcome.work));
  const std::vector<bool> bundled = in_bundles(bundles, requests.size());
  std::unordered_map<std::string, size_t> index;
  std::vector<Answered> answered;
  std::vector<size_t> answer_of;  // of every redistribution
  plan.redistributions.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    const auto [at, is_new] = index.try_emplace(question_key(request), answered.size());
    if (is_new) {
      LeftForAdvice left;
      auto answer = pipeline.answer(request, left);
      answered.push_back({std::move(answer), std::move(left)});
    }
    Answered& entry = answered[at->second];
    if (!entry.answer) {
      outcome.failures.push_back({i, entry.answer.error(), {}});
      continue;
    }
    if (prices && !bundled[i] && !entry.number)
      entry.number = prices->add(*entry.answer, 1, std::move(entry.left));
    entry.left.problem.reset();
    ++entry.times;
    answer_of.push_back(at->second);
    PlannedRedistribution& planned = plan.redistributions.emplace_back(*entry.answer);
    planned.request.id = request.id;
    planned.request.count = request.count;
    planned.request.notes = request.notes;
  }
  add_bundles(pipeline, bundles, answered, outcome);
  outcome.work += pipeline.work();
  if (prices && outcome.failures.empty()) advise(plan, *prices, answered, answer_of, bundled);
  if (prices) outcome.work += prices->work();
  plan.totals = totals_of_file(plan);
  return outcome;
}

struct QuestionPlanner::Parts : OneByOne {
  using OneByOne::OneByOne;
};

namespace {

PlanOptions without_advice(PlanOptions options) {
  options.advice = false;
  return options;
}

// Of its work, what a question may take that is answered alike beside advice, which has half of it.
constexpr int64_t easy_percent = 30;

}  // namespace

QuestionPlanner::QuestionPlanner(const MeshTable& meshes, const Topology& topology,
                                 const PlanOptions& options)
    : parts_(std::make_unique<Parts>(meshes, topology, without_advice(options))) {
  if (options.advice) advised_ = std::make_unique<Parts>(meshes, topology, options);
}

QuestionPlanner::~QuestionPlanner() = default;

Result<PlannedRedistribution> QuestionPlanner::answer(const Request& request) {
  const int64_t before = parts_->pipeline.work();
  auto planned = parts_->answer(request);
  const int64_t work = parts_->pipeline.work() - before;
  if (!advised_ || !advised_->pipeline.advises() ||
      work <= parts_->plan.options.work_budget / 100 * easy_percent)
    return planned;
  return advised_->answer(request);
}

}  // namespace meshplan
