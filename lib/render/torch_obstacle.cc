#include <algorithm>

#include "base/text.h"
#include "render/torch.h"

namespace meshplan {
namespace {

// Mesh dims whose placement differs between the two states.
std::vector<int32_t> changed_dims(const std::vector<Placement>& before,
                                  const std::vector<Placement>& after) {
  std::vector<int32_t> changed;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] != after[i]) changed.push_back(static_cast<int32_t>(i));
  }
  return changed;
}

// Some tensor dim is cut by two mesh dims or more into parts that are not all equal: PyTorch then
// works with rank 0's sizes everywhere.
bool has_uneven_nesting(const State& state, const TensorMeta& tensor) {
  for (size_t d = 0; d < state.shards.size(); ++d) {
    if (state.shards[d].size() > 1 && tensor.shape[d] % product_of_sizes(state.shards[d]) != 0)
      return true;
  }
  return false;
}

bool is_sharded(const State& state) {
  return std::any_of(state.shards.begin(), state.shards.end(),
                     [](const auto& order) { return product_of_sizes(order) > 1; });
}

std::string quoted_dims(const Mesh& mesh, const std::vector<int32_t>& dims) {
  std::vector<std::string> names;
  names.reserve(dims.size());
  for (const int32_t dim : dims) names.push_back("\"" + mesh.dims[dim].name + "\"");
  return "[" + join(names, ", ") + "]";
}

}  // namespace

std::string torch_obstacle(const MeshTable& meshes, const Mesh& mesh, const TensorMeta& tensor,
                           const State& before, const Step& step) {
  const std::vector<int64_t> shape = mesh_shape(mesh);
  if (step.op == Op::exchange) return "PyTorch has no point-to-point exchange of boxes";
  if (!has_whole_dims(before, shape) || !has_whole_dims(step.state, shape))
    return "a part of a mesh dim has no placement in PyTorch";
  const std::vector<Placement> from = placements_of(before, shape);
  const std::vector<Placement> to = placements_of(step.state, shape);
  const std::vector<int32_t> changed = changed_dims(from, to);
  if (changed.empty()) return "only the shard order changes, which PyTorch does by gathering";
  const bool orders = !is_default_order(before) || !is_default_order(step.state);
  for (const int32_t dim : changed) {
    const size_t i = static_cast<size_t>(dim);
    if (op_between(from[i], to[i]) != step.op)
      return "PyTorch would run " + std::string(to_text(op_between(from[i], to[i]))) + " on " +
             mesh.dims[i].name;
  }
  if (step.op == Op::to_partial && std::any_of(changed.begin(), changed.end(), [&](int32_t i) {
        return !is_shard(from[i]) || to[i].op != ReduceOp::sum;
      })) {
    return "redistribute() makes only shards partial, and only sums";
  }
  if (is_local(step.op) && !orders) return "";
  const bool gathers = step.op == Op::all_gather || step.op == Op::all_to_all;
  if ((gathers || changed.size() > 1) &&
      (has_uneven_nesting(before, tensor) || has_uneven_nesting(step.state, tensor))) {
    return "an uneven extent cut by several mesh dims: PyTorch takes rank 0's sizes for every rank's";
  }
  if (changed.size() == 1) return "";
  if (orders) return "several mesh dims at once under a shard order of one's own";
  const Placement& src = from[changed.front()];
  const Placement& dst = to[changed.front()];
  for (const int32_t dim : changed) {
    const size_t i = static_cast<size_t>(dim);
    const bool same_source =
        from[i] == src || (is_partial(from[i]) && is_partial(src) && may_mix(from[i].op, src.op));
    if (!same_source || to[i] != dst) return "PyTorch merges only equal changes";
  }
  if (step.op == Op::all_to_all) return "PyTorch never merges all_to_alls";
  if (step.op == Op::reduce_scatter && is_sharded(before))
    return "beside other shards PyTorch reduces the inner mesh dim whole before it scatters";
  std::vector<size_t> positions;
  positions.reserve(changed.size());
  for (const int32_t dim : changed) positions.push_back(static_cast<size_t>(dim));
  if (find_flatten(meshes, mesh, positions) != nullptr) return "";
  const bool other_way = find_native_flatten(meshes, mesh, positions).has_value();
  return "one step for " + quoted_dims(mesh, changed) + " needs them flattened" +
         (other_way ? " in this order" : "");
}

}  // namespace meshplan
