#include "torch_rules/merge.h"

#include <algorithm>

#include "base/int_math.h"
#include "plan/describe_moves.h"

namespace meshplan {
namespace {

bool sums_or_averages(const Placement& p) {
  return is_partial(p) && (p.op == ReduceOp::sum || p.op == ReduceOp::avg);
}

std::vector<int32_t> sorted_mesh_dims(std::span<const Transition> run) {
  std::vector<int32_t> dims;
  for (const Transition& t : run) dims.push_back(t.mesh_dim);
  std::sort(dims.begin(), dims.end());
  return dims;
}

// The tensor dim that the run gathers or scatters.
size_t affected_dim(const Transition& t) {
  return static_cast<size_t>(is_shard(t.src) ? t.src.tensor_dim : t.dst.tensor_dim);
}

// The member that sees the largest extent of the affected dim, the first of equals: the outermost
// one.
const Transition& outermost(std::span<const Transition> run) {
  if (run.size() == 1 || op_between(run.front().src, run.front().dst) == Op::all_reduce)
    return run.front();
  const size_t dim = affected_dim(run.front());
  return *std::max_element(run.begin(), run.end(), [&](const Transition& a, const Transition& b) {
    return a.logical_shape[dim] < b.logical_shape[dim];
  });
}

// Appends the runs of `run` under the sub-run rule: the longest part that may merge, then what is
// left on either side of it.
void merge_parts(std::span<const Transition> run, size_t first, std::span<const int64_t> mesh_shape,
                 const IsDeclared& is_declared, std::vector<MergedRun>& runs) {
  for (size_t count = run.size(); count >= 2; --count) {
    for (size_t at = 0; at + count <= run.size(); ++at) {
      if (merge_obstacle(run.subspan(at, count), mesh_shape, is_declared)) continue;
      merge_parts(run.first(at), first, mesh_shape, is_declared, runs);
      runs.push_back({first + at, count});
      merge_parts(run.subspan(at + count), first + at + count, mesh_shape, is_declared, runs);
      return;
    }
  }
  for (size_t i = 0; i < run.size(); ++i) runs.push_back({first + i, 1});
}

// What a step is for; `last` is what its mesh dims hold in the end.
std::string reason_of(const Step& step, std::span<const Transition> run, const Placement& last,
                      const Mesh& mesh) {
  std::string dims;
  for (size_t i = 0; i < step.mesh_dims.size(); ++i) {
    if (i != 0) dims += i + 1 == step.mesh_dims.size() ? " and " : ", ";
    dims += mesh.dims[step.mesh_dims[i].mesh_dim].name;
  }
  const Placement& src = run.front().src;
  const Placement& dst = run.front().dst;
  std::string why = filled(row_of(step.op).why_by_rules, {{"dims", dims},
                                                          {"from", std::to_string(src.tensor_dim)},
                                                          {"to", std::to_string(dst.tensor_dim)},
                                                          {"result", to_text(dst)}});
  if (is_shard(src) && is_replicate(dst) && is_shard(last)) {
    why +=
        ", where the mesh dims outside it shard the target's tensor dim differently; it is sliced "
        "again below";
  } else if (is_replicate(dst) && !is_replicate(last)) {
    why += "; it becomes " + to_text(last) + " below";
  }
  if (step.merged > 1) {
    why += "; " + std::to_string(step.merged) + " steps in one on the flattened group";
    if (step.scale_divisor > 1)
      why += ", summed and then divided by " + std::to_string(step.scale_divisor);
  }
  return why;
}

}  // namespace

bool may_join(const Transition& a, const Transition& b) {
  if (!row_of(op_between(a.src, a.dst)).torch_merges || a.dst != b.dst) return false;
  return a.src == b.src || (sums_or_averages(a.src) && sums_or_averages(b.src));
}

std::optional<WarningKind> merge_obstacle(std::span<const Transition> run,
                                          std::span<const int64_t> mesh_shape,
                                          const IsDeclared& is_declared) {
  const Op op = op_between(run.front().src, run.front().dst);
  auto ascend = [](const Transition& a, const Transition& b) { return a.mesh_dim < b.mesh_dim; };
  if (op == Op::reduce_scatter && !std::is_sorted(run.begin(), run.end(), ascend))
    return WarningKind::non_ascending;
  if (op == Op::all_gather && !std::is_sorted(run.rbegin(), run.rend(), ascend))
    return WarningKind::non_ascending;
  const std::vector<int32_t> dims = sorted_mesh_dims(run);
  if (!is_declared(dims)) return WarningKind::missing_flatten;
  if (op == Op::reduce_scatter) {
    int64_t group = 1;
    for (const int32_t dim : dims) group = saturating_mul(group, mesh_shape[dim]);
    if (outermost(run).logical_shape[affected_dim(run.front())] % group != 0)
      return WarningKind::uneven_shape;
  }
  return std::nullopt;
}

MergeResult merge_transitions(std::span<const Transition> transitions,
                              std::span<const int64_t> mesh_shape, const IsDeclared& is_declared,
                              MergeRule rule) {
  MergeResult result;
  result.runs.reserve(transitions.size());
  for (size_t first = 0; first < transitions.size();) {
    size_t end = first + 1;
    while (end < transitions.size() && may_join(transitions[end], transitions[first])) ++end;
    const std::span<const Transition> run = transitions.subspan(first, end - first);
    std::optional<WarningKind> obstacle;
    if (run.size() > 1) obstacle = merge_obstacle(run, mesh_shape, is_declared);
    if (!obstacle) {
      result.runs.push_back({first, run.size()});
    } else {
      result.unmerged.push_back({{first, run.size()},
                                 *obstacle,
                                 sorted_mesh_dims(run),
                                 op_between(run.front().src, run.front().dst)});
      if (rule == MergeRule::largest_sub_run) {
        merge_parts(run, first, mesh_shape, is_declared, result.runs);
      } else {
        for (size_t i = first; i < end; ++i) result.runs.push_back({i, 1});
      }
    }
    first = end;
  }
  return result;
}

std::vector<Step> steps_of(const State& src, std::span<const Transition> transitions,
                           std::span<const MergedRun> runs, const Mesh& mesh,
                           ShardPosition position) {
  std::vector<Step> steps;
  steps.reserve(runs.size());
  const std::vector<int64_t> shape = mesh_shape(mesh);
  const State* before = &src;
  for (const MergedRun& merged : runs) {
    const std::span<const Transition> run = transitions.subspan(merged.first, merged.count);
    Step& step = steps.emplace_back();
    step.op = op_between(run.front().src, run.front().dst);
    step.merged = static_cast<int64_t>(merged.count);
    step.logical_shape = outermost(run).logical_shape;
    step.state = *before;
    for (const Transition& t : run) {
      apply_transition(step.state, t, shape, position);
      step.mesh_dims.push_back({t.mesh_dim, 1, shape[t.mesh_dim]});
    }
    before = &step.state;
    std::sort(step.mesh_dims.begin(), step.mesh_dims.end());
    if (row_of(step.op).reduces) {
      step.reduce_op = run.front().src.op;
      if (run.size() > 1 && sums_or_averages(run.front().src)) {
        // One reduction by sum; what was to be averaged is divided afterwards.
        step.reduce_op = ReduceOp::sum;
        for (const Transition& t : run) {
          if (t.src.op == ReduceOp::avg)
            step.scale_divisor = saturating_mul(step.scale_divisor, shape[t.mesh_dim]);
        }
      }
    }
    if (run.size() == 1) {
      describe_uniform(step, run.front().src, run.front().dst);
    } else {
      std::vector<Move> moves;
      for (const Transition& t : run)
        moves.push_back({{t.mesh_dim, 1, shape[t.mesh_dim]}, t.src, t.dst});
      std::sort(moves.begin(), moves.end(),
                [](const Move& a, const Move& b) { return a.sub_axis < b.sub_axis; });
      describe_moves(step, std::move(moves));
    }
    const Placement* last = &run.front().dst;
    for (size_t i = merged.first + merged.count; i < transitions.size(); ++i) {
      if (transitions[i].mesh_dim == run.front().mesh_dim) last = &transitions[i].dst;
    }
    step.why = reason_of(step, run, *last, mesh);
  }
  return steps;
}

}  // namespace meshplan
