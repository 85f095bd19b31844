#include "planner/greedy.h"

#include "base/int_math.h"

namespace meshplan {
namespace {

// Whether the mesh dims outside `mesh_dim` that shard `tensor_dim` now are those that shard it in the end.
bool outer_shards_agree(std::span<const Placement> now, std::span<const Placement> end, size_t mesh_dim, int32_t tensor_dim) {
  for (size_t i = 0; i < mesh_dim; ++i) {
    const bool has = is_shard(now[i]) && now[i].tensor_dim == tensor_dim;
    const bool wants = is_shard(end[i]) && end[i].tensor_dim == tensor_dim;
    if (has != wants) return false;
  }
  return true;
}

}  // namespace

std::vector<Transition> greedy_transitions(std::span<const Placement> src, std::span<const Placement> dst,
                                           std::span<const int64_t> mesh_shape, std::span<const int64_t> tensor_shape) {
  std::vector<Transition> transitions;
  const std::vector<int64_t> whole(tensor_shape.begin(), tensor_shape.end());
  if (mesh_shape.size() == 1) {
    if (src[0] != dst[0]) transitions.push_back({0, src[0], dst[0], whole});
    return transitions;
  }

  // The tensor as the rank at coordinate 0 sees it before mesh dim i of the source shards it.
  std::vector<std::vector<int64_t>> logical_shapes;
  std::vector<int64_t> narrowed = whole;
  int64_t shards = 1;
  for (size_t i = 0; i < mesh_shape.size(); ++i) {
    logical_shapes.push_back(narrowed);
    if (!is_shard(src[i])) continue;
    int64_t& extent = narrowed[static_cast<size_t>(src[i].tensor_dim)];
    extent = ceil_div(extent, mesh_shape[i]);
    shards = saturating_mul(shards, mesh_shape[i]);
  }

  std::vector<Placement> now(src.begin(), src.end());
  auto change = [&](size_t i, const Placement& target) {
    if (now[i] == target) return;
    transitions.push_back({static_cast<int32_t>(i), now[i], target, logical_shapes[i]});
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
