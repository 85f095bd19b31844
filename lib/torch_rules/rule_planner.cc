#include "torch_rules/rule_planner.h"

#include <algorithm>
#include <functional>

#include "base/int_math.h"
#include "base/text.h"
#include "torch_rules/graph.h"
#include "torch_rules/greedy.h"
#include "torch_rules/merge.h"

namespace meshplan {
namespace {

const Mesh& mesh_of(const PlanQuestion& question) {
  return question.meshes->meshes[question.request->src_mesh];
}

// Steps as the planner emitted them, one transition each.
std::vector<MergedRun> one_by_one(size_t count) {
  std::vector<MergedRun> runs(count);
  for (size_t i = 0; i < count; ++i) runs[i].first = i;
  return runs;
}

// The states that the transitions pass through, one by one, as trace_of writes them.
std::string unmerged_trace(const State& src, std::span<const Transition> transitions,
                           std::span<const int64_t> mesh_shape, ShardPosition position) {
  std::string trace;
  trace.reserve((transitions.size() + 1) * (6 * mesh_shape.size() + 2));
  append_text(trace, src, mesh_shape);
  State state = src;
  for (const Transition& t : transitions) {
    apply_transition(state, t, mesh_shape, position);
    trace += "->";
    append_text(trace, state, mesh_shape);
  }
  return trace;
}

Warning warning_of(const UnmergedRun& unmerged, std::span<const Transition> transitions,
                   const Mesh& mesh) {
  Warning warning;
  warning.kind = unmerged.reason;
  for (const int32_t dim : unmerged.mesh_dims) warning.dims.push_back(mesh.dims[dim].name);
  warning.collective = unmerged.op;
  warning.operations = static_cast<int64_t>(unmerged.run.count);
  warning.mesh = mesh.name;
  const std::string steps = std::to_string(warning.operations) + " " + to_text(warning.collective) +
                            " steps over " + join(warning.dims, ", ");
  const std::span<const Transition> run =
      transitions.subspan(unmerged.run.first, unmerged.run.count);
  switch (unmerged.reason) {
    case WarningKind::missing_flatten:
      warning.fix_name = join(warning.dims, "_");
      warning.message = steps + " would be 1 if these mesh dims were declared flattened (" +
                        warning.fix_name + ")";
      break;
    case WarningKind::non_ascending: {
      std::vector<std::string> order;
      for (const Transition& t : run) order.push_back(mesh.dims[t.mesh_dim].name);
      warning.message =
          steps + " cannot be 1: they run in the order " + join(order, ", ") +
          ", and PyTorch merges " +
          (unmerged.op == Op::all_gather ? "gathers of descending" : "scatters of ascending") +
          " mesh dims only";
      break;
    }
    case WarningKind::uneven_shape: {
      const auto tensor_dim = static_cast<size_t>(run.front().dst.tensor_dim);
      int64_t extent = 0;
      int64_t ranks = 1;
      for (const Transition& t : run) {
        extent = std::max(extent, t.logical_shape[tensor_dim]);
        ranks = saturating_mul(ranks, mesh.dims[t.mesh_dim].size);
      }
      warning.message = steps + " cannot be 1: " + std::to_string(extent) +
                        " elements of tensor dim " + std::to_string(tensor_dim) +
                        " do not divide by the " + std::to_string(ranks) +
                        " ranks of the merged group; pad the tensor dim";
      break;
    }
  }
  return warning;
}

}  // namespace

State effective_target(const Request& request, std::span<const int64_t> mesh_shape) {
  if (request.direction == Direction::forward || request.dst.partial.empty() ||
      request.src_mesh != request.dst_mesh)
    return request.dst;
  const std::vector<Placement> from = placements_of(request.src, mesh_shape);
  State target = request.dst;
  std::erase_if(target.partial, [&](const PendingSubAxis& pending) {
    return !is_partial(from[pending.sub_axis.mesh_dim]);
  });
  return target;
}

Result<RuleAnswer> rule_transitions(const PlanQuestion& question) {
  const Request& request = *question.request;
  if (request.src_mesh != request.dst_mesh) {
    return no_plan("source and target are on different meshes ('" +
                   question.meshes->meshes[request.src_mesh].name + "' and '" +
                   question.meshes->meshes[request.dst_mesh].name +
                   "'), which PyTorch's rules cannot plan; use --planner optimal");
  }
  const Mesh& mesh = mesh_of(question);
  const std::vector<int64_t> shape = mesh_shape(mesh);
  RuleAnswer answer;
  const bool default_orders = is_default_order(request.src) && is_default_order(request.dst);
  answer.planner = question.options->planner == PlannerKind::graph || !default_orders
                       ? PlannerKind::graph
                       : PlannerKind::greedy;
  if (answer.planner == PlannerKind::graph) {
    answer.position = ShardPosition::last;
    auto found = graph_transitions(question);
    if (!found) return found.error();
    answer.transitions = *std::move(found);
  } else {
    answer.transitions =
        greedy_transitions(placements_of(request.src, shape), placements_of(request.dst, shape),
                           shape, request.tensor.shape);
  }
  if (auto executable =
          check_executable(placements_of(request.src, shape), answer.transitions, mesh);
      !executable)
    return executable.error();
  return answer;
}

StepList merged_steps(const PlanQuestion& question, const RuleAnswer& answer,
                      std::span<const int32_t> also_declared) {
  const Mesh& mesh = mesh_of(question);
  const std::vector<int64_t> shape = mesh_shape(mesh);
  const State& src = question.request->src;
  StepList list;
  list.dst = question.request->dst;
  if (!question.options->merge) {
    list.steps = steps_of(src, answer.transitions, one_by_one(answer.transitions.size()), mesh,
                          answer.position);
    return list;
  }
  const auto declared_in_question = [&](std::span<const int32_t> dims) {
    if (std::equal(dims.begin(), dims.end(), also_declared.begin(), also_declared.end()))
      return true;
    return find_flatten(*question.meshes, mesh, {dims.begin(), dims.end()}) != nullptr;
  };
  // By reference: a std::function of that size would be on the heap.
  const IsDeclared is_declared = std::cref(declared_in_question);
  const MergeRule rule =
      question.options->rules == Rules::native ? MergeRule::largest_sub_run : MergeRule::whole_run;
  const MergeResult merged = merge_transitions(answer.transitions, shape, is_declared, rule);
  list.steps = steps_of(src, answer.transitions, merged.runs, mesh, answer.position);
  if (merged.runs.size() != answer.transitions.size()) {
    list.unmerged_trace = unmerged_trace(src, answer.transitions, shape, answer.position);
  }
  for (const UnmergedRun& unmerged : merged.unmerged) {
    Warning warning = warning_of(unmerged, answer.transitions, mesh);
    // Once per set of dims and reason, as PyTorch warns.
    const bool known = std::any_of(
        list.warnings.begin(), list.warnings.end(),
        [&](const Warning& w) { return w.kind == warning.kind && w.dims == warning.dims; });
    if (!known) list.warnings.push_back(std::move(warning));
  }
  return list;
}

}  // namespace meshplan
