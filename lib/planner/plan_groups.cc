#include "planner/plan_groups.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "mesh/groups.h"
#include "plan/step_mesh.h"

namespace meshplan {
namespace {

// The layout of the ranks that differ on these sub-axes only, canonical.
Layout sub_axes_layout(const Mesh& mesh, const std::vector<SubAxis>& sub_axes) {
  std::vector<Layout> parts;
  for (const SubAxis& sub_axis : sub_axes) {
    const MeshDim& dim = mesh.dims[sub_axis.mesh_dim];
    if (sub_axis.size == dim.size) {
      parts.push_back(dim.layout);
      continue;
    }
    auto factors = split_layout(
        dim.layout, {sub_axis.before, sub_axis.size, dim.size / (sub_axis.before * sub_axis.size)});
    MESHPLAN_CHECK(factors.ok(), "a step runs on a part of mesh dim '" + dim.name +
                                     "' that its layout does not have");
    parts.push_back((*factors)[1]);
  }
  return coalesce(join_layouts(parts));
}

}  // namespace

PlanGroups::PlanGroups(const MeshTable& meshes) : meshes_(meshes) {
  for (const Mesh& mesh : meshes.meshes) {
    std::vector<size_t> all(mesh.dims.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    PlanGroup group{mesh.name, mesh.name, dim_names(mesh), group_layout(mesh, all)};
    group.size = size(group.layout);
    group.count = mesh.universe->world / group.size;
    whole_.push_back({std::move(group), mesh.group_options, mesh.universe});
  }
  for (const Group& group : group_table(meshes)) {
    const GroupUser& first = group.users.front();
    learn({{"", first.mesh, first.dims, group.layout}, group.options, group.universe}, first.name);
  }
}

std::string PlanGroups::unused_id(const std::string& name, const Known& known) const {
  auto taken = [&](const std::string& id) {
    auto differs = [&](const Known& k) {
      return k.group.id == id &&
             (k.universe != known.universe || k.group.layout != known.group.layout ||
              k.options != known.options);
    };
    return std::any_of(whole_.begin(), whole_.end(), differs) ||
           std::any_of(known_.begin(), known_.end(), differs) ||
           std::any_of(joined_.begin(), joined_.end(),
                       [&](const auto& joined) { return joined.second.id == id; });
  };
  if (!taken(name)) return name;
  const std::string base = known.group.mesh.empty() ? name : known.group.mesh + "." + name;
  std::string id = base;
  for (int number = 2; taken(id); ++number) id = base + "." + std::to_string(number);
  return id;
}

void PlanGroups::learn(Known known, const std::string& name) {
  PlanGroup& group = known.group;
  group.id = unused_id(name, known);
  group.size = size(group.layout);
  group.count = known.universe->world / group.size;
  known_.push_back(std::move(known));
}

const PlanGroup& PlanGroups::group_of(const Mesh& mesh, const Step& step, Rules rules) {
  const Layout layout = sub_axes_layout(mesh, step.mesh_dims);
  const bool single = step.mesh_dims.size() == 1;
  const bool any_order = !single && rules == Rules::native;
  auto find = [&]() -> const PlanGroup* {
    const Known* reordered = nullptr;
    for (const Known& k : known_) {
      if (k.universe != mesh.universe) continue;
      // A mesh dim's own options decide between groups of one layout; a flatten is found by layout
      // alone, and then by its ranks.
      if (single && k.options != mesh.dims[step.mesh_dims[0].mesh_dim].group_options) continue;
      if (k.group.layout == layout) return &k.group;
      if (any_order && reordered == nullptr && has_same_offsets(k.group.layout, layout))
        reordered = &k;
    }
    return reordered == nullptr ? nullptr : &reordered->group;
  };
  if (const PlanGroup* group = find()) return *group;
  PlanGroup group{"", mesh.name, {}, layout};
  group.declared = false;
  for (const SubAxis& sub_axis : step.mesh_dims)
    group.dims.push_back(to_text(sub_axis, dim_names(mesh), mesh_shape(mesh)));
  const std::string name = join(group.dims, "_");
  learn(
      {std::move(group),
       single ? mesh.dims[step.mesh_dims[0].mesh_dim].group_options : std::string(), mesh.universe},
      name);
  return known_.back().group;
}

const PlanGroup& PlanGroups::exchange_group(const Request& request, const Mesh& from,
                                            const Mesh& to) {
  if (from.universe != to.universe) return joined_group(from, to);
  // Across meshes of one universe, its root holds both.
  const bool two_meshes =
      request.src_mesh != request.dst_mesh &&
      meshes_.meshes[request.src_mesh].universe == meshes_.meshes[request.dst_mesh].universe;
  return whole_[find_mesh(meshes_, (two_meshes ? root_of(meshes_, to) : to).name).value()].group;
}

const PlanGroup& PlanGroups::joined_group(const Mesh& a, const Mesh& b) {
  Known known;
  std::vector<std::shared_ptr<const Universe>> universes;
  for (const auto& universe : universes_of(meshes_)) {
    if (universe != a.universe && universe != b.universe) continue;
    universes.push_back(universe);
    known.group.universes.push_back(root_of(meshes_, universe == a.universe ? a : b).name);
  }
  if (const auto made = joined_.find(known.group.universes); made != joined_.end())
    return made->second;
  PlanGroup group = known.group;
  group.id = unused_id(join(group.universes, "+"), known);
  group.size = rank_count(universes);
  if (group.size > 1) group.layout = Layout{{{group.size, 1}}};
  return joined_.emplace(group.universes, std::move(group)).first->second;
}

void PlanGroups::name_groups(PlannedRedistribution& redistribution) {
  const std::vector<Mesh>& meshes = meshes_.meshes;
  const Mesh* mesh = &meshes[redistribution.request.src_mesh];
  for (Step& step : redistribution.steps) {
    step.group.clear();
    // A collective runs on the mesh of the state before it.
    const Mesh& on = *mesh;
    mesh = &mesh_after(meshes_, redistribution.request, step);
    if (is_local(step.op)) continue;
    const int64_t ranks = product_of_sizes(step.mesh_dims);
    const bool on_mesh = row_of(step.op).scope == OpScope::mesh;
    if (ranks == 1 && !on_mesh) continue;
    const PlanGroup& group = on_mesh ? exchange_group(redistribution.request, on, *mesh)
                                     : group_of(on, step, redistribution.rules);
    step.group = group.id;
    used_.emplace(group.id, group);
  }
}

void PlanGroups::count_use(const PlannedRedistribution& redistribution, int64_t times) {
  for (const Step& step : redistribution.steps) {
    if (!step.group.empty()) used_.at(step.group).used_by += times;
  }
}

std::vector<PlanGroup> PlanGroups::groups() const {
  std::vector<PlanGroup> list;
  for (const auto& [id, group] : used_) list.push_back(group);
  return list;
}

}  // namespace meshplan
