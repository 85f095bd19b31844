#include "torch_rules/greedy.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

// Whether the mesh dims outside `mesh_dim` that shard `tensor_dim` now are those that shard it in
// the end.
bool outer_shards_agree(std::span<const Placement> now, std::span<const Placement> end,
                        size_t mesh_dim, int32_t tensor_dim) {
  for (size_t i = 0; i < mesh_dim; ++i) {
    const bool has = is_shard(now[i]) && now[i].tensor_dim == tensor_dim;
    const bool wants = is_shard(end[i]) && end[i].tensor_dim == tensor_dim;
    if (has != wants) return false;
  }
  return true;
}

}  // namespace

std::vector<Transition> greedy_transitions(std::span<const Placement> src,
                                           std::span<const Placement> dst,
                                           std::span<const int64_t> mesh_shape,
                                           std::span<const int64_t> tensor_shape) {
  std::vector<Transition> transitions;
  if (mesh_shape.size() == 1) {
    if (src[0] != dst[0])
      transitions.push_back({0, src[0], dst[0], {tensor_shape.begin(), tensor_shape.end()}});
    return transitions;
  }

  // The tensor as the rank at coordinate 0 sees it before mesh dim i of the source shards it, one
  // after the other.
  std::vector<int64_t> logical_shapes(tensor_shape.begin(), tensor_shape.end());
  const auto rank = static_cast<std::ptrdiff_t>(tensor_shape.size());
  logical_shapes.resize(tensor_shape.size() * mesh_shape.size());
  int64_t shards = 1;
  for (size_t i = 0; i < mesh_shape.size(); ++i) {
    const auto here = logical_shapes.begin() + static_cast<std::ptrdiff_t>(i) * rank;
    const bool is_last = i + 1 == mesh_shape.size();
    if (!is_last) std::copy(here, here + rank, here + rank);
    if (!is_shard(src[i])) continue;
    if (!is_last) here[rank + src[i].tensor_dim] = ceil_div(here[src[i].tensor_dim], mesh_shape[i]);
    shards = saturating_mul(shards, mesh_shape[i]);
  }

  std::vector<Placement> now(src.begin(), src.end());
  transitions.reserve(2 * mesh_shape.size());
  auto change = [&](size_t i, const Placement& target) {
    if (now[i] == target) return;
    const auto shape = logical_shapes.begin() + static_cast<std::ptrdiff_t>(i) * rank;
    Transition& made = transitions.emplace_back();
    made.mesh_dim = static_cast<int32_t>(i);
    made.src = now[i];
    made.dst = target;
    made.logical_shape.assign(shape, shape + rank);
    now[i] = target;
  };
  if (shards > 1) {
    for (size_t i = mesh_shape.size(); i-- > 0;) {
      const bool aligned = !is_shard(dst[i]) || outer_shards_agree(now, dst, i, dst[i].tensor_dim);
      change(i, aligned ? dst[i] : replicate());
    }
  }
  for (size_t i = 0; i < mesh_shape.size(); ++i) change(i, dst[i]);
  return transitions;
}

}  // namespace meshplan
