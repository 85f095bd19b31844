#include "verify/warnings.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"
#include "verify/claims.h"
#include "verify/op_rules.h"
#include "verify/sentences.h"
#include "verify/unmerged_runs.h"

namespace meshplan::verification {
namespace {

// The name of a flatten of these dims: joined by "_", and more of them where that is taken.
bool is_named_after(const std::string& name, const std::vector<std::string>& dims) {
  const std::string joined = join(dims, "_");
  return name.rfind(joined, 0) == 0 &&
         name.find_first_not_of('_', joined.size()) == std::string::npos;
}

// Far more than any plan of one redistribution has. Time sets no limit: a collective that moves
// nothing takes none.
constexpr int64_t most_collectives = 4096;

// Steps of the unmerged plan that run this op.
int64_t unmerged_steps_of(const PlannedRedistribution& redistribution, Op op) {
  int64_t count = 0;
  for (const Step& step : redistribution.steps) count += step.op == op ? step.merged : 0;
  return count;
}

bool is_flattened(const Plan& plan, Rules rules, const Warning& warning) {
  const auto index = find_mesh(plan.meshes, warning.mesh);
  if (!index) return false;
  const Mesh& mesh = plan.meshes.meshes[*index];
  std::vector<size_t> dims;
  for (const std::string& dim : warning.dims) dims.push_back(find_dim(mesh, dim).value_or(0));
  if (rules == Rules::native) return find_native_flatten(plan.meshes, mesh, dims).has_value();
  return find_flatten(plan.meshes, mesh, dims) != nullptr;
}

// The runs of steps that a warning of PyTorch's rules is about, by its kind and mesh dims.
std::vector<UnmergedRun> runs_of(const Plan& plan, const PlannedRedistribution& redistribution,
                                 const Warning& warning) {
  const Mesh& mesh = plan.meshes.meshes[redistribution.request.src_mesh];
  std::vector<int32_t> asked;
  for (const std::string& dim : warning.dims) {
    if (const auto at = find_dim(mesh, dim)) asked.push_back(static_cast<int32_t>(*at));
  }
  const bool flattened = is_flattened(plan, redistribution.rules, warning);
  std::vector<UnmergedRun> runs = unmerged_runs(redistribution);
  std::erase_if(runs, [&](const UnmergedRun& run) {
    std::vector<int32_t> dims = run.mesh_dims;
    std::sort(dims.begin(), dims.end());
    return dims != asked || obstacle_of(run, flattened) != warning.kind;
  });
  return runs;
}

// Its mesh dims as its steps run. `warning` names them in mesh order.
std::vector<std::string> names_of_run(const UnmergedRun& run, const Warning& warning) {
  std::vector<int32_t> sorted = run.mesh_dims;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> names;
  for (const int32_t dim : run.mesh_dims) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), dim) - sorted.begin();
    names.push_back(warning.dims[static_cast<size_t>(at)]);
  }
  return names;
}

// What the message leaves out of what its warning says.
Problem check_message(const Warning& warning) {
  const auto lacks = [&](const std::string& text) {
    return warning.message.find(text) == std::string::npos;
  };
  const int64_t saves = warning.saves_ns;
  const std::string saved = "saves " + human_ns(saves);
  if (saves > 0 && lacks(saved)) return "its message does not say that it " + saved;
  if (lacks(to_text(warning.collective) + std::string(" ")) ||
      lacks("over " + join(warning.dims, ", ")))
    return "its message does not say that it is about " + std::string(to_text(warning.collective)) +
           " over them";
  if (lacks(warning.fix_name)) return "its message does not name the fix " + warning.fix_name;
  return std::nullopt;
}

// What the message says besides in numbers. `run`: that it is about, under PyTorch's rules.
Problem check_numbers_told(const Warning& warning, const UnmergedRun* run) {
  const std::string saved = "saves " + human_ns(warning.saves_ns);
  const std::string operations = std::to_string(warning.operations);
  std::vector<std::string> said{
      saved, "over " + join(warning.dims, ", "), operations + " " + to_text(warning.collective),
      counted_noun(warning.operations, "step") + " planned", "declare " + warning.fix_name};
  if (run != nullptr) {
    said.insert(
        said.end(),
        {"would be 1 ", "cannot be 1:", "(" + warning.fix_name + ")",
         saved + " and " + counted_noun(warning.saves_collectives, "collective"),
         "in the order " + join(names_of_run(*run, warning), ", "),
         std::to_string(run->extent) + " elements of tensor dim " + std::to_string(run->tensor_dim),
         "the " + std::to_string(run->ranks) + " ranks"});
  }
  if (auto problem = check_numbers(warning.message, said)) return "its message " + *problem;
  return std::nullopt;
}

// Of a warning of PyTorch's rules: it is about runs that are there, each of its mesh dims a step
// once, and saves the collectives that go where they become one.
Problem check_runs(const Warning& warning, const std::vector<UnmergedRun>& runs) {
  if (runs.empty()) return std::string("no steps behind one another are what it is about");
  if (runs.front().op != warning.collective) {
    return "it is about " + std::string(to_text(warning.collective)) + ", the steps are " +
           to_text(runs.front().op);
  }
  if (warning.operations != std::ssize(warning.dims))
    return numbers("operations", warning.operations, "the mesh dims of the steps are",
                   std::ssize(warning.dims));
  int64_t saves = 0;
  for (const UnmergedRun& run : runs) {
    if (!obstacle_of(run, true) && run.collectives > 0) saves += run.collectives - 1;
  }
  if (warning.saves_collectives == saves) return std::nullopt;
  return numbers("saves_collectives", warning.saves_collectives, "as one its steps save", saves);
}

// What is saved, of one redistribution: by a search beside what the warnings before save, by
// PyTorch's rules each by itself.
class Savings {
 public:
  explicit Savings(const PlannedRedistribution& redistribution)
      : totals_(redistribution.totals), searched_(redistribution.planner == PlannerKind::optimal) {}

  // The plan with the flatten declared has at least one step, on it, and keeps to the bounds.
  Problem check(const Warning& warning) {
    const int64_t saves = warning.saves_ns;
    const int64_t predicted = ns_of_ps(totals_.predicted_ps);
    const int64_t most = predicted - ns_of_ps(totals_.lower_bound_ps);
    const int64_t in_sum = saturating_add(saved_ns_, saves);
    if (in_sum > most) return numbers("saves_ns", in_sum, "above its bound the plan takes", most);
    const int64_t collectives = saturating_add(saved_collectives_, warning.saves_collectives);
    if (collectives > std::max<int64_t>(0, totals_.collectives - 1))
      return numbers("saves_collectives", collectives, "the plan has", totals_.collectives);
    // What is merged only becomes less.
    if (!searched_ && warning.saves_collectives < 0)
      return numbers("saves_collectives", warning.saves_collectives, "it should be at least", 0);
    if (searched_) {
      if (saves < 0) return numbers("saves_ns", saves, "it should be at least", 0);
      if (collectives < totals_.collectives - most_collectives)
        return numbers("saves_collectives", collectives, "it should be at least",
                       totals_.collectives - most_collectives);
      saved_ns_ = in_sum;
      saved_collectives_ = collectives;
    }
    return std::nullopt;
  }

 private:
  const Totals& totals_;
  bool searched_;
  int64_t saved_ns_ = 0;
  int64_t saved_collectives_ = 0;
};

// `operations`: of a search the collectives of the plan, of PyTorch's rules the steps of a run.
Problem check_operations(const PlannedRedistribution& redistribution, const Warning& warning) {
  if (redistribution.planner == PlannerKind::optimal) {
    const int64_t collectives = redistribution.totals.collectives;
    if (warning.operations == collectives) return std::nullopt;
    return numbers("operations", warning.operations, "the plan has", collectives);
  }
  const int64_t steps = unmerged_steps_of(redistribution, warning.collective);
  if (warning.operations <= steps) return std::nullopt;
  return numbers("operations", warning.operations, "its steps of that op stand for", steps);
}

}  // namespace

Problem check_warnings(const Plan& plan, const PlannedRedistribution& redistribution) {
  for (const Warning& warning : redistribution.warnings) {
    const std::string name = std::string("its warning ") + to_text(warning.kind);
    auto index = find_mesh(plan.meshes, warning.mesh);
    if (!index) return name + " is about mesh '" + warning.mesh + "', which the plan lacks";
    const Mesh& mesh = plan.meshes.meshes[*index];
    std::optional<size_t> last;
    for (const std::string& dim : warning.dims) {
      auto at = find_dim(mesh, dim);
      if (!at || (last && *at <= *last))
        return name + " names '" + dim + "', which is not a dim of mesh '" + warning.mesh +
               "' or out of order";
      last = at;
    }
    if (warning.dims.size() < 2 || warning.operations < 1 || is_alone(warning.collective)) {
      return name + " is about " + std::to_string(warning.dims.size()) + " dims and " +
             std::to_string(warning.operations) + " " + to_text(warning.collective) +
             " steps: there is nothing to merge";
    }
    const bool missing = warning.kind == WarningKind::missing_flatten;
    if (!missing && !warning.fix_name.empty())
      return name + " has the fix '" + warning.fix_name + "', and no flatten helps here";
    if (missing && !is_named_after(warning.fix_name, warning.dims))
      return name + " over " + join(warning.dims, ", ") + " has the fix '" + warning.fix_name +
             "', which is not named after them";
  }
  return std::nullopt;
}

Problem check_savings(const Plan& plan, const PlannedRedistribution& redistribution) {
  Savings savings(redistribution);
  for (const Warning& warning : redistribution.warnings) {
    const std::string name =
        std::string("its warning ") + to_text(warning.kind) + " over " + join(warning.dims, ", ");
    if (warning.kind == WarningKind::missing_flatten) {
      if (is_flattened(plan, redistribution.rules, warning))
        return name + ": these dims are flattened already";
    } else if (warning.saves_ns != 0 || warning.saves_collectives != 0) {
      return name + numbers(": saves_ns", warning.saves_ns,
                            "nothing is saved without a flatten, so it should be", 0);
    }
    const bool by_torch = redistribution.rules == Rules::dtensor;
    std::vector<UnmergedRun> runs;
    if (by_torch) runs = runs_of(plan, redistribution, warning);
    Problem problem = savings.check(warning);
    if (!problem && by_torch) problem = check_runs(warning, runs);
    if (!problem) problem = check_message(warning);
    // Where rules merge parts of runs the steps do not tell what the runs were.
    const bool searched = redistribution.planner == PlannerKind::optimal;
    if (!problem && (by_torch || searched))
      problem = check_numbers_told(warning, by_torch ? runs.data() : nullptr);
    if (!problem) problem = check_operations(redistribution, warning);
    if (problem) return name + ": " + *problem;
  }
  return std::nullopt;
}

}  // namespace meshplan::verification
