#include "planner/plan_groups.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "mesh/groups.h"

namespace meshplan {
namespace {

// The layout of the ranks that differ on these atoms only, canonical.
Layout atoms_layout(const Mesh& mesh, const std::vector<Atom>& atoms) {
  std::vector<Layout> parts;
  for (const Atom& atom : atoms) {
    const MeshDim& dim = mesh.dims[static_cast<size_t>(atom.mesh_dim)];
    if (atom.size == dim.size) {
      parts.push_back(dim.layout);
      continue;
    }
    auto factors =
        split_layout(dim.layout, {atom.before, atom.size, dim.size / (atom.before * atom.size)});
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
    group.count = meshes.universe->world / group.size;
    whole_.push_back({std::move(group), mesh.group_options});
  }
  for (const Group& group : group_table(meshes)) {
    const GroupUser& first = group.users.front();
    learn({"", first.mesh, first.dims, group.layout}, first.name, group.options);
  }
}

std::string PlanGroups::unused_id(const std::string& name, const std::string& mesh,
                                  const Layout& layout, const std::string& options) const {
  auto taken = [&](const std::string& id) {
    auto differs = [&](const Known& k) {
      return k.group.id == id && (k.group.layout != layout || k.options != options);
    };
    return std::any_of(whole_.begin(), whole_.end(), differs) ||
           std::any_of(known_.begin(), known_.end(), differs);
  };
  if (!taken(name)) return name;
  std::string id = mesh + "." + name;
  for (int number = 2; taken(id); ++number) id = mesh + "." + name + "." + std::to_string(number);
  return id;
}

void PlanGroups::learn(PlanGroup group, const std::string& name, const std::string& options) {
  group.id = unused_id(name, group.mesh, group.layout, options);
  group.size = size(group.layout);
  group.count = meshes_.universe->world / group.size;
  known_.push_back({std::move(group), options});
}

const PlanGroup& PlanGroups::group_of(const Mesh& mesh, const Step& step) {
  const Layout layout = atoms_layout(mesh, step.mesh_dims);
  const bool single = step.mesh_dims.size() == 1;
  auto find = [&]() -> const PlanGroup* {
    for (const Known& k : known_) {
      // A mesh dim's own options decide between groups of one layout; a flatten is found by layout
      // alone.
      if (k.group.layout != layout) continue;
      if (single &&
          k.options != mesh.dims[static_cast<size_t>(step.mesh_dims[0].mesh_dim)].group_options)
        continue;
      return &k.group;
    }
    return nullptr;
  };
  if (const PlanGroup* group = find()) return *group;
  PlanGroup group{"", mesh.name, {}, layout};
  group.declared = false;
  for (const Atom& atom : step.mesh_dims)
    group.dims.push_back(to_text(atom, dim_names(mesh), mesh_shape(mesh)));
  const std::string name = join(group.dims, "_");
  learn(std::move(group), name,
        single ? mesh.dims[static_cast<size_t>(step.mesh_dims[0].mesh_dim)].group_options
               : std::string());
  return known_.back().group;
}

const PlanGroup& PlanGroups::exchange_group(const PlannedRedistribution& redistribution) const {
  const Request& request = redistribution.request;
  // Across meshes the universe's root, the first mesh, holds both.
  return whole_[request.src_mesh == request.dst_mesh ? request.src_mesh : 0].group;
}

void PlanGroups::name_groups(PlannedRedistribution& redistribution) {
  const std::vector<Mesh>& meshes = meshes_.meshes;
  const Mesh* mesh = &meshes[redistribution.request.src_mesh];
  for (Step& step : redistribution.steps) {
    step.group.clear();
    // A collective runs on the mesh of the state before it.
    const Mesh& on = *mesh;
    if (!step.mesh.empty()) mesh = &meshes[find_mesh(meshes_, step.mesh).value()];
    if (is_local(step.op)) continue;
    int64_t ranks = 1;
    for (const Atom& atom : step.mesh_dims) ranks *= atom.size;
    const bool on_mesh = row_of(step.op).scope == OpScope::mesh;
    if (ranks == 1 && !on_mesh) continue;
    const PlanGroup& group = on_mesh ? exchange_group(redistribution) : group_of(on, step);
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
