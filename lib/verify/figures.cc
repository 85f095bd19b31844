#include "verify/figures.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/int_math.h"
#include "base/text.h"
#include "tensor/box.h"
#include "verify/bundle.h"
#include "verify/op_rules.h"

namespace meshplan::verification {
namespace {

std::string shape_text(std::span<const int64_t> shape) {
  std::vector<std::string> parts;
  for (int64_t n : shape) parts.push_back(std::to_string(n));
  return "[" + join(parts, ", ") + "]";
}

// Whether one of the sub-axes is the sub-axis or has it as a part.
bool is_within(const SubAxis& sub_axis, const std::vector<SubAxis>& sub_axes) {
  return std::any_of(sub_axes.begin(), sub_axes.end(), [&](const SubAxis& other) {
    return other.mesh_dim == sub_axis.mesh_dim && other.before <= sub_axis.before &&
           sub_axis.before * sub_axis.size <= other.before * other.size;
  });
}

// The tensor dim that a merged gather or scatter is about.
std::optional<size_t> affected_dim(const Step& step) {
  if (step.tensor_dim) return static_cast<size_t>(*step.tensor_dim);
  for (const Move& move : step.moves) {
    if (is_shard(move.src) != is_shard(move.dst))
      return static_cast<size_t>(is_shard(move.src) ? move.src.tensor_dim : move.dst.tensor_dim);
  }
  return std::nullopt;
}

// One size of the logical shape of a greedy step over one mesh dim: the tensor narrowed by the
// source's shards on the mesh dims before.
int64_t greedy_extent(const Request& request, size_t tensor_dim, int32_t mesh_dim) {
  int64_t extent = request.tensor.shape[tensor_dim];
  for (const SubAxis& sub_axis : request.src.shards[tensor_dim]) {
    if (sub_axis.mesh_dim < mesh_dim) extent = ceil_div(extent, sub_axis.size);
  }
  return extent;
}

// The mesh dim of the outermost of the steps that a greedy step stands for. Scatters merge in
// ascending order of mesh dims, gathers in descending order, reductions in the order of the first
// pass, which descends: the first of those with the largest extent of the affected tensor dim.
int32_t outermost_dim(const Request& request, const Step& step) {
  const bool ascending = step.op == Op::reduce_scatter;
  const size_t count = step.mesh_dims.size();
  int32_t outermost = step.mesh_dims[ascending ? 0 : count - 1].mesh_dim;
  if (count == 1 || step.op == Op::all_reduce) return outermost;
  const std::optional<size_t> dim = affected_dim(step);
  if (!dim || *dim >= request.tensor.shape.size()) return outermost;
  int64_t most = greedy_extent(request, *dim, outermost);
  for (size_t i = 1; i < count; ++i) {
    const int32_t other = step.mesh_dims[ascending ? i : count - 1 - i].mesh_dim;
    const int64_t extent = greedy_extent(request, *dim, other);
    if (extent <= most) continue;
    most = extent;
    outermost = other;
  }
  return outermost;
}

// The same for the other planners: the tensor dim as the state's sub-axes outside of the step's
// mesh dims cut it at coordinate 0.
int64_t extent_outside(const std::vector<SubAxis>& order, int64_t extent,
                       std::span<const int64_t> mesh_shape, const Step& step) {
  const auto inside = [&](const SubAxis& sub_axis) { return is_within(sub_axis, step.mesh_dims); };
  auto kept = static_cast<size_t>(std::find_if(order.begin(), order.end(), inside) - order.begin());
  if (std::all_of(order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), inside)) {
    return largest_shard({order.data(), kept}, extent, mesh_shape);
  }
  std::vector<SubAxis> others;
  std::remove_copy_if(order.begin(), order.end(), std::back_inserter(others), inside);
  return largest_shard(others, extent, mesh_shape);
}

std::map<std::string, int64_t> uses_by_group(const Plan& plan) {
  std::map<std::string, int64_t> uses;
  for (const PlannedRedistribution& redistribution : plan.redistributions) {
    for (const Step& step : redistribution.steps) {
      if (!step.group.empty()) ++uses[step.group];
    }
  }
  return uses;
}

// Whether some view of the world has a dim or a flatten of the group's layout, or the group is a
// view itself.
bool is_declared(const MeshTable& table, const PlanGroup& group) {
  return is_declared_layout(table, group) ||
         std::any_of(table.meshes.begin(), table.meshes.end(),
                     [&](const Mesh& mesh) { return mesh.name == group.id; });
}

}  // namespace

bool is_declared_layout(const MeshTable& table, const PlanGroup& group) {
  const auto of = find_mesh(table, group.mesh);
  if (!of) return false;
  const auto& universe = table.meshes[*of].universe;
  auto same = [&](const auto& named) { return named.layout == group.layout; };
  return std::any_of(table.flattens.begin(), table.flattens.end(),
                     [&](const Flatten& flatten) {
                       return flatten.universe == universe && same(flatten);
                     }) ||
         std::any_of(table.meshes.begin(), table.meshes.end(), [&](const Mesh& mesh) {
           return mesh.universe == universe &&
                  std::any_of(mesh.dims.begin(), mesh.dims.end(), same);
         });
}

namespace {

// The names of the roots of both universes, in the order of the file; empty where they are one.
std::vector<std::string> roots_of(const Plan& plan, const Mesh& a, const Mesh& b) {
  std::vector<std::string> roots;
  if (a.universe == b.universe) return roots;
  for (const auto& universe : universes_of(plan.meshes)) {
    if (universe == a.universe || universe == b.universe)
      roots.push_back(root_of(plan.meshes, universe == a.universe ? a : b).name);
  }
  return roots;
}

// A group that joins universes.
Problem check_joined_group(const Plan& plan, const PlanGroup& group) {
  const std::string name = "group '" + group.id + "'";
  std::vector<std::shared_ptr<const Universe>> universes;
  size_t last = 0;
  for (const std::string& root : group.universes) {
    const auto index = find_mesh(plan.meshes, root);
    if (!index || &root_of(plan.meshes, plan.meshes.meshes[*index]) != &plan.meshes.meshes[*index])
      return name + " joins universe '" + root + "', which the plan lacks";
    if (!universes.empty() && *index <= last)
      return name + " joins universes out of order: each once, in the order of the plan";
    universes.push_back(plan.meshes.meshes[*index].universe);
    last = *index;
  }
  const int64_t ranks = rank_count(universes);
  const Layout all = ranks > 1 ? Layout{{{ranks, 1}}} : Layout{};
  if (universes.size() < 2 || !group.mesh.empty() || !group.dims.empty())
    return name + " joins universes, so it has two or more of them, and no mesh or dims";
  if (group.layout != all || group.size != ranks || group.count != 1 || !group.declared) {
    return name + " claims " + std::to_string(group.count) + " communicators of " +
           std::to_string(group.size) + " ranks, layout " + to_text(group.layout) +
           ", where its universes have " + std::to_string(ranks) + " ranks";
  }
  return std::nullopt;
}

}  // namespace

Result<Layout> layout_of(const Mesh& mesh, std::span<const int64_t> mesh_shape,
                         std::span<const SubAxis> sub_axes) {
  Layout joined;
  for (const SubAxis& sub_axis : sub_axes) {
    const auto dim = static_cast<size_t>(sub_axis.mesh_dim);
    const Layout& layout = mesh.dims[dim].layout;
    if (sub_axis.size == mesh_shape[dim]) {
      joined.modes.insert(joined.modes.end(), layout.modes.begin(), layout.modes.end());
      continue;
    }
    auto parts = split_layout(layout, {sub_axis.before, sub_axis.size,
                                       mesh_shape[dim] / sub_axis.before / sub_axis.size});
    if (!parts) return parts.error();
    const std::vector<Mode>& modes = (*parts)[1].modes;
    joined.modes.insert(joined.modes.end(), modes.begin(), modes.end());
  }
  return coalesce(joined);
}

// Whether `layout` is that of the ranks that differ on these sub-axes alone: the comparison of
// layout_of with it, without a layout made.
Result<bool> has_layout(const Layout& layout, const Mesh& mesh, std::span<const int64_t> mesh_shape,
                        std::span<const SubAxis> sub_axes) {
  size_t at = 0;  // modes of `layout` found right
  std::optional<Mode> open;
  const auto close = [&] {
    return !open || (at < layout.modes.size() && layout.modes[at++] == *open);
  };
  for (const SubAxis& sub_axis : sub_axes) {
    const auto dim = static_cast<size_t>(sub_axis.mesh_dim);
    if (sub_axis.size != mesh_shape[dim]) {
      const auto whole = layout_of(mesh, mesh_shape, sub_axes);
      if (!whole) return whole.error();
      return layout == *whole;
    }
    for (const Mode& mode : mesh.dims[dim].layout.modes) {
      if (mode.size == 1) continue;
      const auto reach = checked_mul(mode.size, mode.stride);
      if (open && reach && open->stride == *reach) {
        open = Mode{open->size * mode.size, mode.stride};
        continue;
      }
      if (!close()) return false;
      open = mode;
    }
  }
  return close() && at == layout.modes.size();
}

int64_t ranks_of_group(const Step& step) {
  int64_t ranks = 1;
  for (const SubAxis& sub_axis : step.mesh_dims) ranks *= sub_axis.size;
  return ranks;
}

Problem check_group(const Plan& plan, Rules rules, const Mesh& mesh, const Mesh* from,
                    std::span<const int64_t> mesh_shape, const Step& step) {
  if (is_alone(step.op) || (step.op != Op::exchange && ranks_of_group(step) == 1)) {
    if (step.group.empty()) return std::nullopt;
    return std::string(is_alone(step.op) ? "it runs without communication"
                                         : "its groups have one rank") +
           ", yet it names group '" + step.group + "'";
  }
  auto found = std::find_if(plan.groups.begin(), plan.groups.end(),
                            [&](const PlanGroup& group) { return group.id == step.group; });
  if (found == plan.groups.end()) return "group '" + step.group + "' is not in the plan's groups";
  const std::vector<std::string> roots =
      from == nullptr ? std::vector<std::string>{} : roots_of(plan, *from, mesh);
  if (step.op == Op::exchange && !roots.empty()) {
    if (found->universes == roots) return std::nullopt;
    return "group '" + step.group + "' is not that of all ranks of the universes '" + roots[0] +
           "' and '" + roots[1] + "'";
  }
  const auto of = find_mesh(plan.meshes, found->mesh);
  if (!of || plan.meshes.meshes[*of].universe != mesh.universe) {
    return "group '" + step.group + "' is not in the universe of mesh '" + mesh.name + "'";
  }
  const auto same = has_layout(found->layout, mesh, mesh_shape, step.mesh_dims);
  if (!same) return same.error().message;
  if (*same) return std::nullopt;
  if (from != nullptr && step.op == Op::exchange) {
    const Mesh& whole = root_of(plan.meshes, mesh);
    std::vector<size_t> all(whole.dims.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    if (found->layout == group_layout(whole, all)) return std::nullopt;
  }
  const auto layout = layout_of(mesh, mesh_shape, step.mesh_dims);
  if (!layout) return layout.error().message;
  const bool any_order =
      rules == Rules::native && step.op != Op::exchange && step.mesh_dims.size() > 1;
  if (any_order && has_same_offsets(found->layout, *layout)) return std::nullopt;
  return "group '" + step.group + "' has layout " + to_text(found->layout) +
         " where the ranks of mesh_dims have " + to_text(*layout);
}

Problem check_logical_shape(const PlannedRedistribution& redistribution,
                            std::span<const int64_t> mesh_shape, const State& before,
                            const Step& step) {
  const Request& request = redistribution.request;
  const std::vector<int64_t>& shape = request.tensor.shape;
  const bool greedy = redistribution.planner == PlannerKind::greedy;
  const int32_t outermost = greedy && mesh_shape.size() > 1 ? outermost_dim(request, step) : 0;
  const auto expected = [&](size_t d) {
    return greedy ? greedy_extent(request, d, outermost)
                  : extent_outside(before.shards[d], shape[d], mesh_shape, step);
  };
  bool right = step.logical_shape.size() == shape.size();
  for (size_t d = 0; d < shape.size() && right; ++d) right = step.logical_shape[d] == expected(d);
  if (right) return std::nullopt;
  std::vector<int64_t> sees;
  for (size_t d = 0; d < shape.size(); ++d) sees.push_back(expected(d));
  return "logical shape " + shape_text(step.logical_shape) +
         " where the rank at coordinate 0 sees " + shape_text(sees);
}

Problem check_merged(const Step& step) {
  const bool may_merge = !is_alone(step.op) && step.op != Op::exchange;
  const int64_t replaced = may_merge ? std::ssize(step.mesh_dims) : 1;
  if (step.merged == replaced) return std::nullopt;
  return "its merged is " + std::to_string(step.merged) + ", the steps that it replaces are " +
         std::to_string(replaced);
}

namespace {

// The states between that a merged step stands for: one mesh dim after the other is as after it.
Problem check_states_between(const std::vector<std::string_view>& texts, const Step& step,
                             std::span<const int64_t> mesh_shape, const State& before) {
  if (texts.empty()) return std::nullopt;
  if (!has_whole_dims(before, mesh_shape) || !has_whole_dims(step.state, mesh_shape))
    return std::string("it merges steps of parts of a mesh dim, which PyTorch has not");
  const std::vector<Placement> was = placements_of(before, mesh_shape);
  const std::vector<Placement> will_be = placements_of(step.state, mesh_shape);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto state = parse_state(texts[i], mesh_shape, before.shards.size());
    const std::string text = "its unmerged trace passes '" + std::string(texts[i]) + "', ";
    if (!state || !has_whole_dims(*state, mesh_shape)) return text + "which is no state on the way";
    const std::vector<Placement> is = placements_of(*state, mesh_shape);
    size_t done = 0;   // of those that change
    size_t there = 0;  // of all that the step names
    for (const SubAxis& sub_axis : step.mesh_dims) {
      const auto m = static_cast<size_t>(sub_axis.mesh_dim);
      if (is[m] != will_be[m]) continue;
      ++there;
      done += was[m] != will_be[m] ? 1 : 0;
    }
    size_t same = 0;
    for (size_t m = 0; m < is.size(); ++m) {
      if (is[m] == was[m] || is[m] == will_be[m]) ++same;
    }
    if (done > i + 1 || there < i + 1 || same != is.size())
      return text + "where " + std::to_string(i + 1) + " of the " + std::to_string(step.merged) +
             " steps that one stands for are done";
  }
  return std::nullopt;
}

}  // namespace

Problem check_unmerged_trace(const PlannedRedistribution& redistribution,
                             std::span<const int64_t> mesh_shape) {
  const std::string& unmerged = redistribution.unmerged_trace;
  const auto differs = [&](const std::string& from) {
    return "its unmerged trace is '" + unmerged + "', which differs from " + from;
  };
  const Request& request = redistribution.request;
  if (redistribution.planner == PlannerKind::optimal || request.src_mesh != request.dst_mesh) {
    if (unmerged == redistribution.trace) return std::nullopt;
    return differs("its trace, and nothing was merged");
  }
  const std::vector<std::string_view> texts = texts_of_states(unmerged);
  int64_t replaced = 0;
  for (const Step& step : redistribution.steps) replaced += step.merged;
  if (replaced + 1 != std::ssize(texts)) {
    return "its steps replace " + std::to_string(replaced) +
           " unmerged ones, not those of its unmerged trace: '" + unmerged + "'";
  }
  const State* before = &request.src;
  if (texts.front() != to_text(*before, mesh_shape)) return differs("its source at the start");
  size_t at = 0;
  for (const Step& step : redistribution.steps) {
    const auto count = static_cast<size_t>(step.merged);
    const std::string reached = to_text(step.state, mesh_shape);
    if (texts[at + count] != reached) return differs("the state '" + reached + "' of its steps");
    const std::vector<std::string_view> between(
        texts.begin() + static_cast<std::ptrdiff_t>(at) + 1,
        texts.begin() + static_cast<std::ptrdiff_t>(at + count));
    if (auto problem = check_states_between(between, step, mesh_shape, *before)) return problem;
    at += count;
    before = &step.state;
  }
  return std::nullopt;
}

Problem check_totals(const PlannedRedistribution& redistribution) {
  Totals sum;
  for (const Step& step : redistribution.steps) {
    if (!is_alone(step.op) && (step.op == Op::exchange || ranks_of_group(step) > 1))
      sum.collectives += step.phases;
    sum.wire_bytes = saturating_add(sum.wire_bytes, step.wire_bytes);
    sum.predicted_ps = saturating_add(sum.predicted_ps, step.predicted_ps);
    sum.peak_bytes = std::max(sum.peak_bytes, step.peak_bytes);
  }
  auto differs = [](const char* what, int64_t said, int64_t is) -> Problem {
    if (said == is) return std::nullopt;
    return std::string("its total of ") + what + " is " + std::to_string(said) +
           ", its steps have " + std::to_string(is);
  };
  const Totals& said = redistribution.totals;
  if (auto problem = differs("collectives", said.collectives, sum.collectives)) return problem;
  if (auto problem = differs("wire_bytes", said.wire_bytes, sum.wire_bytes)) return problem;
  if (auto problem = differs("peak_bytes", said.peak_bytes, sum.peak_bytes)) return problem;
  // A file holds nanoseconds, each rounded up by itself: the total is less than the sum of its
  // steps by less than one for each that takes time.
  const int64_t taking_time =
      std::count_if(redistribution.steps.begin(), redistribution.steps.end(),
                    [](const Step& step) { return step.predicted_ps > 0; });
  const int64_t excess = ns_of_ps(sum.predicted_ps) - ns_of_ps(said.predicted_ps);
  if (excess >= 0 && excess < std::max<int64_t>(1, taking_time)) return std::nullopt;
  return differs("predicted_ns", ns_of_ps(said.predicted_ps), ns_of_ps(sum.predicted_ps));
}

Problem check_meshes(const Plan& plan) {
  for (const Mesh& mesh : plan.meshes.meshes) {
    std::vector<Layout> parts;
    for (const MeshDim& dim : mesh.dims) {
      if (size(dim.layout) != dim.size) {
        return "mesh '" + mesh.name + "': dim '" + dim.name + "' has size " +
               std::to_string(dim.size) + " but layout " + to_text(dim.layout);
      }
      parts.push_back(dim.layout);
    }
    auto copies = complement(coalesce(join_layouts(parts)), mesh.universe->world);
    if (!copies)
      return "mesh '" + mesh.name + "' does not tile its world: " + copies.error().message;
  }
  return std::nullopt;
}

namespace {

// A group of one universe.
Problem check_mesh_group(const Plan& plan, const PlanGroup& group) {
  const std::string name = "group '" + group.id + "'";
  auto index = find_mesh(plan.meshes, group.mesh);
  if (!index) return name + " is of mesh '" + group.mesh + "', which the plan lacks";
  const Mesh& mesh = plan.meshes.meshes[*index];
  const std::vector<int64_t> shape = mesh_shape(mesh);
  const std::vector<std::string> names = dim_names(mesh);
  std::vector<SubAxis> sub_axes;
  for (const std::string& dim : group.dims) {
    auto sub_axis = parse_sub_axis(dim, names, shape);
    if (!sub_axis) return name + ": " + sub_axis.error().message;
    sub_axes.push_back(*sub_axis);
  }
  auto layout = layout_of(mesh, shape, sub_axes);
  if (!layout) return name + ": " + layout.error().message;
  if (*layout != group.layout) {
    return name + " has layout " + to_text(group.layout) + " where its dims have " +
           to_text(*layout);
  }
  const int64_t ranks = size(group.layout);
  const int64_t world = mesh.universe->world;
  if (group.size != ranks || group.count != world / ranks) {
    return name + " claims " + std::to_string(group.count) + " communicators of " +
           std::to_string(group.size) + " ranks where there are " + std::to_string(world / ranks) +
           " of " + std::to_string(ranks);
  }
  if (group.declared != is_declared(plan.meshes, group)) {
    return name + (group.declared ? " is marked as declared, but no mesh declares it"
                                  : " is marked as not declared, but a mesh declares it");
  }
  return std::nullopt;
}

}  // namespace

Problem check_groups(const Plan& plan) {
  std::map<std::string, int64_t> uses = uses_by_group(plan);
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const PlanGroup& group = plan.groups[g];
    const std::string name = "group '" + group.id + "'";
    if (g > 0 && plan.groups[g - 1].id >= group.id)
      return name + " is out of order: ids ascend and appear once";
    auto problem =
        group.universes.empty() ? check_mesh_group(plan, group) : check_joined_group(plan, group);
    if (problem) return problem;
    if (uses[group.id] != group.used_by) {
      return name + " claims " + std::to_string(group.used_by) + " uses where " +
             std::to_string(uses[group.id]) + " steps name it";
    }
  }
  const PlanOptions& options = plan.options;
  const auto more = std::count_if(plan.groups.begin(), plan.groups.end(),
                                  [](const PlanGroup& g) { return !g.declared && g.used_by > 0; });
  if (options.planner == PlannerKind::optimal && options.groups == GroupPolicy::any &&
      options.max_groups >= 0 && more > options.max_groups) {
    return "it runs on " + std::to_string(more) +
           " groups that no mesh declares, and max_groups is " + std::to_string(options.max_groups);
  }
  return std::nullopt;
}

Problem check_file_totals(const Plan& plan) {
  Totals sum;
  const auto add = [&](int64_t collectives, int64_t wire, int64_t peak, int64_t count) {
    sum.collectives = saturating_add(sum.collectives, saturating_mul(collectives, count));
    sum.wire_bytes = saturating_add(sum.wire_bytes, saturating_mul(wire, count));
    sum.peak_bytes = std::max(sum.peak_bytes, peak);
  };
  const std::vector<bool> in_bundle = bundled(plan);
  for (size_t i = 0; i < plan.redistributions.size(); ++i) {
    const PlannedRedistribution& one = plan.redistributions[i];
    if (in_bundle[i]) continue;
    add(one.totals.collectives, one.totals.wire_bytes, one.totals.peak_bytes, one.request.count);
  }
  for (const PlannedBundle& bundle : plan.bundles) {
    const BundleTotals& totals = bundle.totals;
    add(totals.rounds, totals.wire_bytes, totals.peak_bytes, bundle.request.count);
  }
  auto differs = [](const char* what, int64_t said, int64_t is) -> Problem {
    if (said == is) return std::nullopt;
    return std::string("the file's total of ") + what + " is " + std::to_string(said) +
           ", its redistributions have " + std::to_string(is);
  };
  if (auto problem = differs("collectives", plan.totals.collectives, sum.collectives))
    return problem;
  if (auto problem = differs("wire_bytes", plan.totals.wire_bytes, sum.wire_bytes)) return problem;
  return differs("peak_bytes", plan.totals.peak_bytes, sum.peak_bytes);
}

}  // namespace meshplan::verification
