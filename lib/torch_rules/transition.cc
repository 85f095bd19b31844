#include "torch_rules/transition.h"

#include <algorithm>

namespace meshplan {

namespace {

// Pending with what the transition makes pending, though they may not mix; -1: nothing is.
int32_t mixed_with(const Transition& t, std::span<const Placement> now) {
  for (int32_t m = 0; m < std::ssize(now); ++m) {
    if (m != t.mesh_dim && is_partial(now[m]) && !may_mix(now[m].op, t.dst.op)) return m;
  }
  return -1;
}

}  // namespace

Status check_executable(std::span<const Placement> src, std::span<const Transition> transitions,
                        const Mesh& mesh) {
  std::vector<Placement> now(src.begin(), src.end());
  for (const Transition& t : transitions) {
    const MeshDim& dim = mesh.dims[t.mesh_dim];
    now[t.mesh_dim] = t.dst;
    if (!is_partial(t.dst)) continue;
    if (const int32_t other = mixed_with(t, now); other >= 0) {
      return no_plan("mesh dim '" + dim.name + "' would go from " + to_text(t.src) + " to " +
                     to_text(t.dst) + " while " + to_text(now[other]) + " is pending on '" +
                     mesh.dims[other].name +
                     "', and the order of their reductions would decide the result: reduce one of "
                     "them first, as a redistribution of its own");
    }
    if (dim.size == 1 || is_replicate(t.src)) continue;
    if (is_shard(t.src) && t.dst.op == ReduceOp::sum) continue;
    return no_plan(
        "mesh dim '" + dim.name + "' would go from " + to_text(t.src) + " to " + to_text(t.dst) +
        ", which no operation does: PyTorch plans this step and fails on it; go through R");
  }
  return Done{};
}

void apply_transition(State& state, const Transition& transition,
                      std::span<const int64_t> mesh_shape, ShardPosition position) {
  const SubAxis sub_axis{transition.mesh_dim, 1, mesh_shape[transition.mesh_dim]};
  if (is_shard(transition.src)) {
    std::vector<SubAxis>& order = state.shards[transition.src.tensor_dim];
    order.erase(std::find(order.begin(), order.end(), sub_axis));
  } else if (is_partial(transition.src)) {
    state.partial.erase(
        std::find_if(state.partial.begin(), state.partial.end(),
                     [&](const PendingSubAxis& pending) { return pending.sub_axis == sub_axis; }));
  }
  if (is_shard(transition.dst)) {
    std::vector<SubAxis>& order = state.shards[transition.dst.tensor_dim];
    order.insert(position == ShardPosition::last
                     ? order.end()
                     : std::upper_bound(order.begin(), order.end(), sub_axis),
                 sub_axis);
  } else if (is_partial(transition.dst)) {
    auto behind =
        std::find_if(state.partial.begin(), state.partial.end(),
                     [&](const PendingSubAxis& pending) { return sub_axis < pending.sub_axis; });
    state.partial.insert(behind, {sub_axis, transition.dst.op});
  }
}

}  // namespace meshplan
