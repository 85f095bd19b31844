#include "torch_rules/audit.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"
#include "cost/step_cost.h"
#include "cost/worth.h"
#include "tensor/box.h"
#include "torch_rules/merge.h"

namespace meshplan {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

std::string names_of(const Mesh& mesh, std::span<const SubAxis> sub_axes) {
  std::vector<std::string> names;
  for (const SubAxis& sub_axis : sub_axes) names.push_back(mesh.dims[sub_axis.mesh_dim].name);
  return join(names, ", ");
}

// "3, 2, 3, 2", cut short.
std::string listed(const std::vector<int64_t>& sizes) {
  constexpr size_t most = 8;
  std::vector<std::string> parts;
  for (size_t i = 0; i < sizes.size() && i < most; ++i) parts.push_back(number(sizes[i]));
  if (sizes.size() > most) parts.emplace_back("...");
  return join(parts, ", ");
}

bool holds(const Step& step, int32_t mesh_dim) {
  return std::any_of(step.mesh_dims.begin(), step.mesh_dims.end(),
                     [&](const SubAxis& sub_axis) { return sub_axis.mesh_dim == mesh_dim; });
}

AuditFinding finding(const char* code, const char* kind, size_t step, std::string message) {
  AuditFinding found;
  found.code = code;
  found.kind = kind;
  found.step = static_cast<int64_t>(step);
  found.message = std::move(message);
  return found;
}

class Audit {
 public:
  Audit(const PlanQuestion& question, const TorchPlan& torch)
      : question_(question),
        torch_(torch),
        request_(*question.request),
        steps_(torch.planned.steps),
        mesh_(question.meshes->meshes[request_.src_mesh]),
        shape_(mesh_shape(mesh_)) {}

  std::vector<AuditFinding> run() {
    const bool empty = std::any_of(request_.tensor.shape.begin(), request_.tensor.shape.end(),
                                   [](int64_t n) { return n == 0; });
    if (!empty) merged_uneven_gathers();
    rank_dependent_merges();
    unit_dim_traffic();
    sequential_reductions();
    whole_reductions();
    merged_costs_more();
    for (AuditFinding& found : found_) {
      found.wire_bytes = torch_.planned.totals.wire_bytes;
      found.predicted_ps = torch_.planned.totals.predicted_ps;
    }
    return std::move(found_);
  }

 private:
  const State& before(size_t step) const {
    return step == 0 ? request_.src : steps_[step - 1].state;
  }

  void merged_uneven_gathers() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (step.op != Op::all_gather || step.merged < 2) continue;
      const auto tensor_dim = static_cast<size_t>(step.tensor_dim.value());
      const std::vector<SubAxis>& order = before(i).shards[tensor_dim];
      const size_t outer = order.size() - step.mesh_dims.size();
      std::vector<int64_t> sizes;
      for (size_t k = outer; k < order.size(); ++k) sizes.push_back(order[k].size);
      for (const int64_t left :
           widths_left(std::span(order).first(outer), request_.tensor.shape[tensor_dim])) {
        const auto pieces = nested_differs_from_flat(sizes, left);
        if (!pieces) continue;
        found_.push_back(finding("A0401", "merged_uneven_gather", i,
                                 "PyTorch gathers tensor dim " + number(step.tensor_dim.value()) +
                                     " over " + names_of(mesh_, step.mesh_dims) +
                                     " in one step as if it were sharded flat: the ranks hold " +
                                     listed(pieces->nested) + " of " + number(left) +
                                     " elements, it reads " + listed(pieces->flat) +
                                     "; the result is wrong and no error is raised"));
        break;
      }
    }
  }

  // The merge pass asks each rank whether its own extent divides by the group.
  void rank_dependent_merges() {
    const auto is_declared = [&](std::span<const int32_t> dims) {
      return find_flatten(*question_.meshes, mesh_, {dims.begin(), dims.end()}) != nullptr;
    };
    const std::vector<Transition>& transitions = torch_.answer.transitions;
    if (!question_.options->merge) return;
    State state = request_.src;
    size_t at = 0;
    for (size_t i = 0; i < steps_.size();) {
      const Transition& first = transitions[at];
      size_t end = at + 1;
      while (end < transitions.size() && may_join(transitions[end], first)) ++end;
      const std::span<const Transition> run = std::span(transitions).subspan(at, end - at);
      if (run.size() > 1 && op_between(first.src, first.dst) == Op::reduce_scatter) {
        const auto obstacle = merge_obstacle(run, shape_, is_declared);
        if (!obstacle || *obstacle == WarningKind::uneven_shape) divergence(i, run, state);
      }
      for (; at < end; ++at)
        apply_transition(state, transitions[at], shape_, torch_.answer.position);
      // A run is one step or one step each.
      for (size_t covered = 0; covered < run.size(); ++i)
        covered += static_cast<size_t>(steps_[i].merged);
    }
  }

  void divergence(size_t step, std::span<const Transition> run, const State& state) {
    const auto tensor_dim = static_cast<size_t>(run.front().dst.tensor_dim);
    const bool greedy = torch_.answer.planner == PlannerKind::greedy;
    // What narrows the tensor dim before the run's outermost mesh dim shards it, as each planner
    // counts it.
    std::vector<SubAxis> outer =
        greedy ? request_.src.shards[tensor_dim] : state.shards[tensor_dim];
    if (greedy)
      std::erase_if(outer, [&](const SubAxis& sub_axis) {
        return sub_axis.mesh_dim >= run.front().mesh_dim;
      });
    int64_t group = 1;
    for (const Transition& t : run) group = saturating_mul(group, shape_[t.mesh_dim]);
    const std::vector<int64_t> widths = widths_left(outer, request_.tensor.shape[tensor_dim]);
    const auto divides = [&](int64_t left) { return left % group == 0; };
    const auto merges = std::find_if(widths.begin(), widths.end(), divides);
    const auto stays = std::find_if_not(widths.begin(), widths.end(), divides);
    if (merges == widths.end() || stays == widths.end()) return;
    found_.push_back(finding("A0402", "rank_dependent_merge", step,
                             "ranks with " + number(*merges) + " elements of tensor dim " +
                                 std::to_string(tensor_dim) + " merge " +
                                 std::to_string(run.size()) + " reduce_scatters into one over " +
                                 number(group) + " ranks, those with " + number(*stays) +
                                 " do not: their collectives do not match"));
  }

  // The same question without the mesh dims of size 1.
  void unit_dim_traffic() {
    const auto drop = [&](State& state) {
      const auto unit = [&](const SubAxis& sub_axis) { return shape_[sub_axis.mesh_dim] == 1; };
      for (std::vector<SubAxis>& order : state.shards) std::erase_if(order, unit);
      std::erase_if(state.partial,
                    [&](const PendingSubAxis& pending) { return unit(pending.sub_axis); });
    };
    Request request = request_;
    drop(request.src);
    drop(request.dst);
    if (request.src == request_.src && request.dst == request_.dst) return;
    PlanQuestion question = question_;
    question.request = &request;
    const auto answer = rule_transitions(question);
    if (!answer) return;
    PlannedRedistribution without;
    without.request = request;
    without.steps = merged_steps(question, *answer).steps;
    price_redistribution(without, *question_.meshes, *question_.topology);
    const int64_t wire = torch_.planned.totals.wire_bytes;
    if (without.totals.wire_bytes >= wire) return;
    found_.push_back(finding(
        "A0404", "unit_dim_traffic", 0,
        "mesh dims of size 1 change how the others are planned: " + number(wire) +
            " bytes a rank instead of " + number(without.totals.wire_bytes) + " without them"));
    found_.back().step = -1;
  }

  void sequential_reductions() {
    if (!is_floating(request_.tensor.dtype)) return;
    int64_t used = 1;
    for (const std::vector<SubAxis>& order : torch_.planned.dst.shards)
      used = saturating_mul(used, product_of_sizes(order));
    for (const PendingSubAxis& pending : torch_.planned.dst.partial)
      used = saturating_mul(used, pending.sub_axis.size);
    const bool replicas = used < mesh_size(mesh_);
    // The order of minima and maxima makes no difference.
    const bool rounds =
        std::any_of(request_.src.partial.begin(), request_.src.partial.end(),
                    [](const PendingSubAxis& pending) {
                      return pending.op != ReduceOp::min && pending.op != ReduceOp::max;
                    });
    if (!replicas || !rounds) return;
    for (const ReductionNote& note : torch_.planned.reductions) {
      if (note.collectives < 2) continue;
      found_.push_back(finding(
          "A0405", "sequential_reductions", 0,
          "the reduction over " + join(note.dims, ", ") + " passes through " +
              number(note.collectives) + " collectives (" + note.nesting +
              "), each free to add in its own order: replicas may differ in the last bits"));
      found_.back().step = -1;
    }
  }

  void whole_reductions() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (!steps_[i].reduce_op || product_of_sizes(steps_[i].mesh_dims) == 1) continue;
      // A mesh dim that shards the target by a later slice could have cut the tensor before this
      // step.
      std::vector<SubAxis> late;
      int64_t parts = 1;
      for (size_t k = i + 1; k < steps_.size(); ++k) {
        if (steps_[k].op != Op::slice) continue;
        const SubAxis& sub_axis = steps_[k].mesh_dims.front();
        const std::vector<Placement> now = placements_of(before(i), shape_);
        const bool free = is_replicate(now[sub_axis.mesh_dim]);
        if (sub_axis.size == 1 || !(free || holds(steps_[i], sub_axis.mesh_dim))) continue;
        late.push_back(sub_axis);
        parts = saturating_mul(parts, sub_axis.size);
      }
      if (late.empty()) continue;
      found_.push_back(finding(
          "A0406", "whole_reduction", i,
          std::string(to_text(steps_[i].op)) + " over " + names_of(mesh_, steps_[i].mesh_dims) +
              " moves " + number(steps_[i].wire_bytes) +
              " bytes a rank, of which the target keeps 1/" + number(parts) +
              ": it is sliced over " + names_of(mesh_, late) + " only afterwards"));
    }
  }

  void merged_costs_more() {
    PlanQuestion question = question_;
    PlanOptions apart = *question_.options;
    apart.merge = false;
    question.options = &apart;
    PlannedRedistribution parts;
    parts.request = request_;
    parts.steps = merged_steps(question, torch_.answer).steps;
    if (parts.steps.size() == steps_.size()) return;
    price_redistribution(parts, *question_.meshes, *question_.topology);
    const int64_t error_percent = model_error_percent(*question_.topology);
    size_t at = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      int64_t sum = 0;
      for (int64_t k = 0; k < steps_[i].merged; ++k)
        sum = saturating_add(sum, parts.steps[at++].predicted_ps);
      // By less than the error of such times neither takes longer for sure.
      if (steps_[i].predicted_ps <= saturating_mul(sum, error_percent) / 100) continue;
      found_.push_back(finding("A0407", "merged_costs_more", i,
                               "the merged " + std::string(to_text(steps_[i].op)) + " over " +
                                   names_of(mesh_, steps_[i].mesh_dims) + " takes " +
                                   human_ns(ns_of_ps(steps_[i].predicted_ps)) + ", its " +
                                   number(steps_[i].merged) + " parts one after the other " +
                                   human_ns(ns_of_ps(sum))));
    }
  }

  const PlanQuestion& question_;
  const TorchPlan& torch_;
  const Request& request_;
  const std::vector<Step>& steps_;
  const Mesh& mesh_;
  std::vector<int64_t> shape_;
  std::vector<AuditFinding> found_;
};

}  // namespace

std::vector<AuditFinding> audit_findings(const PlanQuestion& question, const TorchPlan& torch) {
  return Audit(question, torch).run();
}

std::optional<AuditFinding> torch_moves_more(const MeshTable& meshes, const TorchPlan& torch,
                                             const PlannedRedistribution& planned) {
  const Totals& theirs = torch.planned.totals;
  const Totals& ours = planned.totals;
  if (theirs.predicted_ps < ours.predicted_ps ||
      (theirs.predicted_ps == ours.predicted_ps && theirs.wire_bytes <= ours.wire_bytes))
    return std::nullopt;
  const auto figures = [](const Totals& totals) {
    return human_bytes(totals.wire_bytes) + " a rank in " +
           counted(totals.collectives, "collective") + ", " +
           human_ns(ns_of_ps(totals.predicted_ps));
  };
  AuditFinding found;
  found.code = "A0408";
  found.kind = "torch_moves_more";
  found.message = "PyTorch's own plan moves " + figures(theirs) + "; this plan " + figures(ours);
  found.wire_bytes = theirs.wire_bytes;
  found.predicted_ps = theirs.predicted_ps;
  found.better_wire_bytes = ours.wire_bytes;
  found.better_predicted_ps = ours.predicted_ps;
  found.better_trace =
      trace_of(planned.request.src, planned.steps, meshes.meshes[planned.request.src_mesh],
               meshes.meshes[planned.request.dst_mesh]);
  return found;
}

AuditFinding not_executable(const Error& refusal) {
  AuditFinding found = finding("A0403", "not_executable", 0, refusal.message);
  found.step = -1;
  return found;
}

std::vector<int64_t> widths_left(std::span<const SubAxis> order, int64_t extent) {
  std::vector<int64_t> widths = {extent};
  for (const SubAxis& sub_axis : order) {
    std::vector<int64_t> next;
    for (const int64_t w : widths) {
      const int64_t chunk = ceil_div(w, sub_axis.size);
      next.push_back(chunk);
      if (chunk == 0) continue;
      // Full chunks, one short one where the width does not divide, and nothing for the ranks
      // behind it.
      const int64_t full = w / chunk;
      if (w % chunk != 0) next.push_back(w % chunk);
      if (full + (w % chunk != 0 ? 1 : 0) < sub_axis.size) next.push_back(0);
    }
    std::sort(next.begin(), next.end(), std::greater<>());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    widths = std::move(next);
  }
  return widths;
}

std::optional<PieceSizes> nested_differs_from_flat(std::span<const int64_t> sizes, int64_t width) {
  int64_t ranks = 1;
  for (const int64_t size : sizes) ranks = saturating_mul(ranks, size);
  if (width % ranks == 0) return std::nullopt;
  std::vector<Interval> nested = {{0, width}};
  for (const int64_t size : sizes) {
    std::vector<Interval> next;
    for (const Interval& held : nested) {
      const int64_t all = meshplan::width(held);
      const int64_t chunk = ceil_div(all, size);
      for (int64_t j = 0; j < size; ++j)
        next.push_back(
            {held.lo + std::min(all, j * chunk), held.lo + std::min(all, (j + 1) * chunk)});
    }
    nested = std::move(next);
  }
  PieceSizes pieces;
  bool differs = false;
  const int64_t chunk = ceil_div(width, ranks);
  for (int64_t j = 0; j < ranks; ++j) {
    const Interval flat{std::min(width, j * chunk), std::min(width, (j + 1) * chunk)};
    const Interval& piece = nested[j];
    const bool both_empty = meshplan::width(flat) == 0 && meshplan::width(piece) == 0;
    differs = differs || (!both_empty && !(flat == piece));
    pieces.nested.push_back(meshplan::width(piece));
    pieces.flat.push_back(meshplan::width(flat));
  }
  if (!differs) return std::nullopt;
  return pieces;
}

}  // namespace meshplan
