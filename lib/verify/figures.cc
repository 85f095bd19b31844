#include "verify/figures.h"

#include <algorithm>

namespace meshplan::verification {

Result<Layout> layout_of(const Mesh& mesh, std::span<const int64_t> mesh_shape, std::span<const Atom> atoms) {
  Layout joined;
  for (const Atom& atom : atoms) {
    const auto dim = static_cast<size_t>(atom.mesh_dim);
    const Layout& layout = mesh.dims[dim].layout;
    if (atom.size == mesh_shape[dim]) {
      joined.modes.insert(joined.modes.end(), layout.modes.begin(), layout.modes.end());
      continue;
    }
    auto parts = split_layout(layout, {atom.before, atom.size, mesh_shape[dim] / atom.before / atom.size});
    if (!parts) return parts.error();
    const std::vector<Mode>& modes = (*parts)[1].modes;
    joined.modes.insert(joined.modes.end(), modes.begin(), modes.end());
  }
  return coalesce(joined);
}

Problem check_group(const Plan& plan, const Mesh& mesh, std::span<const int64_t> mesh_shape, const Step& step) {
  if (is_local(step.op)) {
    if (!step.group.empty()) return std::string(to_text(step.op)) + " runs without communication, yet names group '" + step.group + "'";
    return std::nullopt;
  }
  auto found = std::find_if(plan.groups.begin(), plan.groups.end(), [&](const PlanGroup& group) { return group.id == step.group; });
  if (found == plan.groups.end()) return "group '" + step.group + "' is not in the plan's groups";
  auto layout = layout_of(mesh, mesh_shape, step.mesh_dims);
  if (!layout) return layout.error().message;
  if (found->layout != *layout) {
    return "group '" + step.group + "' has layout " + to_text(found->layout) + " where the ranks of mesh_dims have " + to_text(*layout);
  }
  return std::nullopt;
}

}  // namespace meshplan::verification
