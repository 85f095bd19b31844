// Plans written down by hand: the states and ops of one redistribution, with the figures that
// follow from them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "mesh/mesh_table.h"
#include "plan/plan.h"
#include "tensor/box.h"

namespace meshplan::test {

struct HandStep {
  Op op = Op::slice;
  std::vector<std::string> mesh_dims;  // names or parts ("b:(1)2"), in mesh order
  std::string state;
  std::optional<ReduceOp> reduce_op = std::nullopt;
  int64_t scale_divisor = 1;
};

inline MeshTable table_of(const std::vector<std::pair<std::string, int64_t>>& dims,
                          const std::vector<std::vector<std::string>>& flattened = {}, std::vector<int64_t> ranks = {}) {
  MeshTable table;
  int64_t world = 1;
  for (const auto& [name, size] : dims) world *= size;
  REQUIRE(add_root(table, "mesh", world, std::move(ranks), dims).ok());
  for (const auto& set : flattened) REQUIRE(declare_flatten(table, "mesh", set).ok());
  return table;
}

inline Placement placement_in(const State& state, const SubAxis& sub_axis) {
  auto inside = [&](const SubAxis& other) {
    return other.mesh_dim == sub_axis.mesh_dim && other.before <= sub_axis.before &&
           sub_axis.before * sub_axis.size <= other.before * other.size;
  };
  for (const PendingSubAxis& pending : state.partial) {
    if (inside(pending.sub_axis)) return partial(pending.op);
  }
  for (size_t d = 0; d < state.shards.size(); ++d) {
    if (std::any_of(state.shards[d].begin(), state.shards[d].end(), inside)) return shard(static_cast<int32_t>(d));
  }
  return replicate();
}

// The tensor narrowed, at coordinate 0, by what the step's mesh dims do not touch.
inline std::vector<int64_t> logical_shape_of(const State& before, const Step& step, const std::vector<int64_t>& shape,
                                             const std::vector<int64_t>& sizes) {
  State others = before;
  for (auto& list : others.shards) {
    std::erase_if(list, [&](const SubAxis& sub_axis) {
      return std::any_of(step.mesh_dims.begin(), step.mesh_dims.end(), [&](const SubAxis& listed) {
        return listed.mesh_dim == sub_axis.mesh_dim && listed.before <= sub_axis.before &&
               sub_axis.before * sub_axis.size <= listed.before * listed.size;
      });
    });
  }
  return largest_box(others, shape, sizes);
}

// Which mesh dims the steps reduce over, in which order and in how many collectives.
inline void note_reductions(PlannedRedistribution& planned, const std::vector<std::string>& names, const std::vector<int64_t>& sizes) {
  planned.reductions.clear();
  ReductionNote note;
  std::set<SubAxis> all;
  const State* before = &planned.request.src;
  for (const Step& step : planned.steps) {
    std::vector<std::string> reduced;
    for (const PendingSubAxis& pending : before->partial) {
      const auto& after = step.state.partial;
      if (!step.reduce_op || pending.sub_axis.size == 1 || std::find(after.begin(), after.end(), pending) != after.end()) continue;
      reduced.push_back(to_text(pending.sub_axis, names, sizes));
      all.insert(pending.sub_axis);
    }
    before = &step.state;
    if (reduced.empty()) continue;
    note.nesting += (note.nesting.empty() ? "" : ", then ") + join(reduced, "+");
    ++note.collectives;
  }
  for (const SubAxis& sub_axis : all) note.dims.push_back(to_text(sub_axis, names, sizes));
  if (note.collectives > 0) planned.reductions.push_back(note);
}

// The figures of every step and the totals, under the plan's topology.
inline void price(Plan& plan) {
  plan.totals = {};
  for (PlannedRedistribution& planned : plan.redistributions) {
    price_redistribution(planned, plan.meshes, plan.topology);
    const int64_t count = planned.request.count;
    plan.totals.collectives += count * planned.totals.collectives;
    plan.totals.wire_bytes += count * planned.totals.wire_bytes;
    plan.totals.predicted_ps += count * planned.totals.predicted_ps;
    plan.totals.lower_bound_bytes += count * planned.totals.lower_bound_bytes;
    plan.totals.lower_bound_ps += count * planned.totals.lower_bound_ps;
    plan.totals.peak_bytes = std::max(plan.totals.peak_bytes, planned.totals.peak_bytes);
  }
}

// A native plan of one redistribution on the first mesh.
inline Plan hand_plan(const MeshTable& table, const std::vector<int64_t>& shape, const std::string& src,
                      const std::vector<HandStep>& steps) {
  const Mesh& mesh = table.meshes.front();
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  const std::vector<std::string> names = dim_names(mesh);
  auto state_of = [&](const std::string& text) {
    auto state = parse_state(text, sizes, shape.size());
    REQUIRE_MESSAGE(state.ok(), text);
    return *state;
  };
  Plan plan;
  plan.spec_digest = "sha256:" + std::string(64, '0');
  plan.meshes = table;
  plan.topology = uniform_topology();
  plan.options.groups = GroupPolicy::any;
  PlannedRedistribution& r = plan.redistributions.emplace_back();
  r.request.id = "x";
  r.request.tensor.shape = shape;
  r.request.src = state_of(src);
  r.request.dst = state_of(steps.empty() ? src : steps.back().state);
  r.dst = r.request.dst;
  State before = r.request.src;
  for (const HandStep& hand : steps) {
    Step& step = r.steps.own().emplace_back();
    step.op = hand.op;
    step.state = state_of(hand.state);
    step.reduce_op = hand.reduce_op;
    step.scale_divisor = hand.scale_divisor;
    std::vector<std::string> dims = hand.mesh_dims;
    if (hand.op == Op::exchange) dims = names;
    std::vector<size_t> whole;
    std::vector<Layout> parts;
    for (const std::string& name : dims) {
      auto sub_axis = parse_sub_axis(name, names, sizes);
      REQUIRE_MESSAGE(sub_axis.ok(), name);
      step.mesh_dims.push_back(*sub_axis);
      whole.push_back(static_cast<size_t>(sub_axis->mesh_dim));
      const MeshDim& dim = mesh.dims[whole.back()];
      auto factors = split_layout(dim.layout, {sub_axis->before, sub_axis->size, dim.size / (sub_axis->before * sub_axis->size)});
      REQUIRE(factors.ok());
      parts.push_back((*factors)[1]);
      step.moves.push_back({*sub_axis, placement_in(before, *sub_axis), placement_in(step.state, *sub_axis)});
    }
    auto same = [&](const Move& move) { return move.src == step.moves.front().src && move.dst == step.moves.front().dst; };
    if (std::all_of(step.moves.begin(), step.moves.end(), same)) {
      step.src = step.moves.front().src;
      step.dst = step.moves.front().dst;
      if (is_shard(*step.src) != is_shard(*step.dst)) step.tensor_dim = is_shard(*step.src) ? step.src->tensor_dim : step.dst->tensor_dim;
      step.moves.clear();
    }
    if (!is_local(hand.op) && hand.op != Op::exchange) step.merged = static_cast<int64_t>(step.mesh_dims.size());
    step.logical_shape = logical_shape_of(before, step, shape, sizes);
    if (!is_local(hand.op)) {
      step.group = hand.op == Op::exchange ? mesh.name : join(dims, "_");
      auto known = std::find_if(plan.groups.begin(), plan.groups.end(), [&](const PlanGroup& g) { return g.id == step.group; });
      if (known == plan.groups.end()) {
        PlanGroup group{step.group, mesh.name, dims, coalesce(join_layouts(parts))};
        group.size = size(group.layout);
        group.count = mesh.universe->world / group.size;
        const bool is_dim = dims.size() == 1 && find_dim(mesh, dims[0]);
        group.declared = is_dim || hand.op == Op::exchange || find_flatten(table, mesh, whole) != nullptr;
        known = plan.groups.insert(plan.groups.end(), group);
      }
      ++known->used_by;
    }
    before = step.state;
  }
  note_reductions(r, names, sizes);
  std::sort(plan.groups.begin(), plan.groups.end(), [](const PlanGroup& a, const PlanGroup& b) { return a.id < b.id; });
  r.trace = trace_of(r.request.src, r.steps, sizes);
  r.unmerged_trace = r.trace;
  price(plan);
  return plan;
}

}  // namespace meshplan::test
