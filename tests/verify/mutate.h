// Broken plans, made from right ones.
//
// A mutation changes the steps of one redistribution as a faulty planner might, and then everything
// that follows from states and mesh dims is written anew (moves, groups, logical shapes, merge
// counts, trace, totals): what is left to find is the fault itself, not its traces.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "plan/plan.h"
#include "verify/build_plan.h"
#include "verify/random_world.h"

namespace meshplan::test {

struct Mutant {
  std::string name;
  PlannedRedistribution planned;
  size_t step = 0;  // the first step that may be named
};

inline bool overlaps(const SubAxis& a, const SubAxis& b) {
  if (a == b) return true;  // of one rank, too
  return a.mesh_dim == b.mesh_dim && a.before < b.before * b.size && b.before < a.before * a.size;
}

inline void remove_sub_axis(State& state, const SubAxis& sub_axis) {
  for (auto& list : state.shards) std::erase_if(list, [&](const SubAxis& other) { return overlaps(sub_axis, other); });
  std::erase_if(state.partial, [&](const PendingSubAxis& pending) { return overlaps(sub_axis, pending.sub_axis); });
}

inline void place_sub_axis(State& state, const SubAxis& sub_axis, const Placement& placement) {
  remove_sub_axis(state, sub_axis);
  if (is_shard(placement)) state.shards[static_cast<size_t>(placement.tensor_dim)].push_back(sub_axis);
  if (is_partial(placement)) {
    state.partial.push_back({sub_axis, placement.op});
    std::sort(state.partial.begin(), state.partial.end(),
              [](const PendingSubAxis& a, const PendingSubAxis& b) { return a.sub_axis < b.sub_axis; });
  }
}

// Writes anew what follows from the states, the ops and the mesh dims of the steps, under the rules
// of graph plans.
inline void rewrite_figures(Plan& plan, PlannedRedistribution& planned) {
  const Mesh& mesh = plan.meshes.meshes[planned.request.src_mesh];
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  const std::vector<std::string> names = dim_names(mesh);
  if (planned.planner == PlannerKind::greedy) planned.planner = PlannerKind::graph;
  planned.totals = {};
  State before = planned.request.src;
  for (Step& step : planned.steps) {
    const bool collective = !is_local(step.op) && step.op != Op::exchange;
    std::vector<SubAxis> told = step.mesh_dims;
    if (step.op == Op::reduce_scatter) {
      // Sliced in the same step.
      for (const auto& list : step.state.shards) {
        for (const SubAxis& sub_axis : list) {
          const bool listed = std::any_of(told.begin(), told.end(), [&](const SubAxis& other) { return overlaps(sub_axis, other); });
          if (!listed && is_replicate(placement_in(before, sub_axis))) told.push_back(sub_axis);
        }
      }
      std::sort(told.begin(), told.end());
    }
    step.moves.clear();
    for (const SubAxis& sub_axis : told)
      step.moves.push_back({sub_axis, placement_in(before, sub_axis), placement_in(step.state, sub_axis)});
    if (step.op == Op::exchange) std::erase_if(step.moves, [](const Move& move) { return move.src == move.dst; });
    step.src.reset();
    step.dst.reset();
    step.tensor_dim.reset();
    auto same = [&](const Move& move) { return move.src == step.moves.front().src && move.dst == step.moves.front().dst; };
    if (!step.moves.empty() && std::all_of(step.moves.begin(), step.moves.end(), same)) {
      step.src = step.moves.front().src;
      step.dst = step.moves.front().dst;
      if (is_shard(*step.src) != is_shard(*step.dst)) step.tensor_dim = is_shard(*step.src) ? step.src->tensor_dim : step.dst->tensor_dim;
      step.moves.clear();
    }
    step.logical_shape = logical_shape_of(before, step, planned.request.tensor.shape, sizes);
    step.merged = collective ? static_cast<int64_t>(step.mesh_dims.size()) : 1;
    step.group.clear();
    int64_t ranks = 1;
    for (const SubAxis& sub_axis : step.mesh_dims) ranks *= sub_axis.size;
    if (step.op == Op::exchange) {
      step.group = mesh.name;
    } else if (collective && ranks > 1) {
      std::vector<std::string> dims;
      for (const SubAxis& sub_axis : step.mesh_dims) dims.push_back(to_text(sub_axis, names, sizes));
      step.group = join(dims, "+");
    }
    if (!step.group.empty()) planned.totals.collectives += step.phases;
    planned.totals.wire_bytes += step.wire_bytes;
    planned.totals.peak_bytes = std::max(planned.totals.peak_bytes, step.peak_bytes);
    planned.totals.predicted_ps += step.predicted_ps;
    before = step.state;
  }
  planned.trace = trace_of(planned.request.src, planned.steps, sizes);
  note_reductions(planned, names, sizes);
  planned.unmerged_trace = planned.trace;
  if (planned.planner == PlannerKind::optimal) return;
  // One arrow for each step that the merged ones stand for, one mesh dim each.
  State at = planned.request.src;
  planned.unmerged_trace = to_text(at, sizes);
  for (const Step& step : planned.steps) {
    for (size_t i = 0; i + 1 < static_cast<size_t>(step.merged); ++i) {
      place_sub_axis(at, step.mesh_dims[i], placement_in(step.state, step.mesh_dims[i]));
      planned.unmerged_trace += "->" + to_text(at, sizes);
    }
    at = step.state;
    planned.unmerged_trace += "->" + to_text(at, sizes);
  }
}

// Adds to the plan every group that `rewrite_figures` names.
inline void add_groups(Plan& plan, const PlannedRedistribution& planned) {
  const Mesh& mesh = plan.meshes.meshes[planned.request.src_mesh];
  for (const Step& step : planned.steps) {
    const bool known = std::any_of(plan.groups.begin(), plan.groups.end(), [&](const PlanGroup& g) { return g.id == step.group; });
    if (step.group.empty() || known) continue;
    std::vector<Layout> parts;
    for (const SubAxis& sub_axis : step.mesh_dims) {
      const MeshDim& dim = mesh.dims[static_cast<size_t>(sub_axis.mesh_dim)];
      auto factors = split_layout(dim.layout, {sub_axis.before, sub_axis.size, dim.size / (sub_axis.before * sub_axis.size)});
      if (factors) parts.push_back((*factors)[1]);
    }
    PlanGroup group;
    group.id = step.group;
    group.mesh = mesh.name;
    group.layout = coalesce(join_layouts(parts));
    plan.groups.push_back(group);
  }
}

// The change that a step makes to the state before it, made to another state; nullopt where a moved
// mesh dim is not there as it was.
inline std::optional<State> redo(const Step& step, const State& was_before, const State& before) {
  State after = before;
  for (const SubAxis& sub_axis : step.mesh_dims) {
    if (placement_in(was_before, sub_axis) != placement_in(before, sub_axis)) return std::nullopt;
    place_sub_axis(after, sub_axis, placement_in(step.state, sub_axis));
  }
  return after;
}

// Every way to break the plan that is worth a try, each with the index of the first step it
// touches.
inline std::vector<Mutant> mutants_of(const Plan& plan, const PlannedRedistribution& right, Random& random) {
  std::vector<Mutant> mutants;
  const std::vector<int64_t> sizes = mesh_shape(plan.meshes.meshes[right.request.src_mesh]);
  const size_t count = right.steps.size();
  const auto rank = static_cast<int64_t>(right.request.tensor.shape.size());
  auto add = [&](const std::string& name, size_t step, const std::function<bool(PlannedRedistribution&)>& change) {
    Mutant mutant{name, right, step};
    if (change(mutant.planned) && !(mutant.planned.steps == right.steps)) mutants.push_back(std::move(mutant));
  };
  auto state_before = [&](size_t i) -> const State& { return i == 0 ? right.request.src : right.steps[i - 1].state; };
  auto random_placement = [&] {
    const int64_t choice = random.below(rank + 2);
    if (choice == 0) return replicate();
    if (choice == 1) return partial(static_cast<ReduceOp>(random.below(5)));
    return shard(static_cast<int32_t>(choice - 2));
  };
  auto random_sub_axis = [&] {
    const int64_t m = random.below(static_cast<int64_t>(sizes.size()));
    return SubAxis{static_cast<int32_t>(m), 1, sizes[static_cast<size_t>(m)]};
  };
  for (size_t i = 0; i < count; ++i) {
    add("drop", i, [&](auto& p) {
      p.steps.own().erase(p.steps.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    });
    add("duplicate", i, [&](auto& p) {
      p.steps.own().insert(p.steps.begin() + static_cast<std::ptrdiff_t>(i), right.steps[i]);
      return true;
    });
    if (i + 1 < count) {
      add("swap", i, [&](auto& p) {
        std::swap(p.steps[i], p.steps[i + 1]);
        return true;
      });
      add("reorder", i, [&](auto& p) {
        auto first = redo(right.steps[i + 1], right.steps[i].state, state_before(i));
        if (!first) return false;
        std::swap(p.steps[i], p.steps[i + 1]);
        p.steps[i].state = *first;
        p.steps[i + 1].state = right.steps[i + 1].state;
        return true;
      });
    }
    if (i + 2 < count && right.steps[i].op == right.steps[i + 2].op && !is_local(right.steps[i].op) && is_local(right.steps[i + 1].op)) {
      add("merge across a local step", i, [&](auto& p) {
        Step& merged = p.steps[i];
        for (const SubAxis& sub_axis : right.steps[i + 2].mesh_dims) {
          merged.mesh_dims.push_back(sub_axis);
          place_sub_axis(merged.state, sub_axis, placement_in(right.steps[i + 2].state, sub_axis));
        }
        std::sort(merged.mesh_dims.begin(), merged.mesh_dims.end());
        merged.scale_divisor *= right.steps[i + 2].scale_divisor;
        p.steps[i + 1].state = right.steps[i + 2].state;
        p.steps.own().erase(p.steps.begin() + static_cast<std::ptrdiff_t>(i + 2));
        return true;
      });
    }
    if (i + 1 < count && right.steps[i].op == right.steps[i + 1].op && !is_local(right.steps[i].op)) {
      add("merge", i, [&](auto& p) {
        Step& merged = p.steps[i + 1];
        for (const SubAxis& sub_axis : right.steps[i].mesh_dims) merged.mesh_dims.push_back(sub_axis);
        std::sort(merged.mesh_dims.begin(), merged.mesh_dims.end());
        p.steps.own().erase(p.steps.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      });
    }
    add("more mesh dims", i, [&](auto& p) {
      const SubAxis sub_axis = random_sub_axis();
      for (const SubAxis& other : p.steps[i].mesh_dims) {
        if (overlaps(sub_axis, other)) return false;
      }
      p.steps[i].mesh_dims.push_back(sub_axis);
      std::sort(p.steps[i].mesh_dims.begin(), p.steps[i].mesh_dims.end());
      return true;
    });
    add("fewer mesh dims", i, [&](auto& p) {
      if (p.steps[i].mesh_dims.size() < 2) return false;
      p.steps[i].mesh_dims.erase(p.steps[i].mesh_dims.begin() +
                                 static_cast<std::ptrdiff_t>(random.below(static_cast<int64_t>(p.steps[i].mesh_dims.size()))));
      return true;
    });
    add("other mesh dims", i, [&](auto& p) {
      p.steps[i].mesh_dims = {random_sub_axis()};
      return true;
    });
    add("mesh dims out of order", i, [&](auto& p) {
      if (p.steps[i].mesh_dims.size() < 2) return false;
      std::reverse(p.steps[i].mesh_dims.begin(), p.steps[i].mesh_dims.end());
      return true;
    });
    add("other reduce op", i, [&](auto& p) {
      p.steps[i].reduce_op = static_cast<ReduceOp>(random.below(5));
      return true;
    });
    add("no reduce op", i, [&](auto& p) {
      p.steps[i].reduce_op.reset();
      return true;
    });
    add("other scale", i, [&](auto& p) {
      p.steps[i].scale_divisor = 1 + random.below(8);
      return true;
    });
    add("other op", i, [&](auto& p) {
      p.steps[i].op = static_cast<Op>(random.below(7));
      // An exchange lists every mesh dim: the op is wrong, not its mesh dims.
      if (p.steps[i].op == Op::exchange) {
        p.steps[i].mesh_dims.clear();
        for (size_t m = 0; m < sizes.size(); ++m) p.steps[i].mesh_dims.push_back({static_cast<int32_t>(m), 1, sizes[m]});
      }
      return true;
    });
    add("other chunks", i, [&](auto& p) {
      p.steps[i].chunks += 1 + random.below(3);
      return true;
    });
    add("other phases", i, [&](auto& p) {
      p.steps[i].phases = random.below(4);
      return true;
    });
    add("other pieces", i, [&](auto& p) {
      p.steps[i].whole_pieces = !p.steps[i].whole_pieces;
      return true;
    });
    add("other fetchers", i, [&](auto& p) {
      p.steps[i].fetched_by_all = !p.steps[i].fetched_by_all;
      return true;
    });
    add("other laps", i, [&](auto& p) {
      p.steps[i].laps = 3 - p.steps[i].laps;
      return true;
    });
    add("other at once", i, [&](auto& p) {
      p.steps[i].at_once = p.steps[i].at_once == 1 ? 0 : 1;
      return true;
    });
    add("other far share", i, [&](auto& p) {
      p.steps[i].far_64ths = p.steps[i].far_64ths == 0 ? 9 : 0;
      return true;
    });
    add("other placement", i, [&](auto& p) {
      place_sub_axis(p.steps[i].state, random_sub_axis(), random_placement());
      return true;
    });
    add("other tensor dim", i, [&](auto& p) {
      if (rank < 2) return false;
      const SubAxis sub_axis = random_sub_axis();
      const Placement now = placement_in(p.steps[i].state, sub_axis);
      if (!is_shard(now)) return false;
      place_sub_axis(p.steps[i].state, sub_axis, shard(static_cast<int32_t>((now.tensor_dim + 1) % rank)));
      return true;
    });
    add("other shard order", i, [&](auto& p) {
      bool changed = false;
      for (auto& list : p.steps[i].state.shards) {
        if (list.size() > 1) {
          std::rotate(list.begin(), list.begin() + 1, list.end());
          changed = true;
        }
      }
      return changed;
    });
    add("other pending op", i, [&](auto& p) {
      for (PendingSubAxis& pending : p.steps[i].state.partial) pending.op = static_cast<ReduceOp>(random.below(5));
      return true;
    });
    add("forgotten pending", i, [&](auto& p) {
      p.steps[i].state.partial.clear();
      return true;
    });
    if (i + 1 < count) {
      add("skipped state", i, [&](auto& p) {
        p.steps[i].state = right.steps[i + 1].state;
        return true;
      });
    }
  }
  return mutants;
}

}  // namespace meshplan::test
