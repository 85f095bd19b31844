#include "planner/flatten_sets.h"

#include "base/text.h"

namespace meshplan {
namespace {

constexpr size_t most_dims = 12;

}  // namespace

std::vector<size_t> wide_dims(const Mesh& mesh) {
  std::vector<size_t> wide;
  for (size_t m = 0; m < mesh.dims.size(); ++m) {
    if (mesh.dims[m].size > 1) wide.push_back(m);
  }
  return wide;
}

std::vector<DimSet> sets_of_dims(const Mesh& mesh) {
  const std::vector<size_t> wide = wide_dims(mesh);
  std::vector<DimSet> sets;
  if (wide.size() > most_dims) return sets;
  for (size_t pick = 1; pick < size_t{1} << wide.size(); ++pick) {
    if ((pick & (pick - 1)) == 0) continue;
    DimSet set;
    for (size_t i = 0; i < wide.size(); ++i) {
      if ((pick >> i & 1) != 0) set.push_back(wide[i]);
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

std::vector<DimSet> undeclared_sets(const MeshTable& meshes, const Mesh& mesh) {
  std::vector<DimSet> sets = sets_of_dims(mesh);
  if (sets.empty()) return sets;  // of files with thousands of small meshes no copy is made
  MeshTable spare = meshes;
  std::erase_if(sets, [&](const DimSet& set) {
    return find_native_flatten(meshes, mesh, set) || !declare_set(spare, mesh, set);
  });
  return sets;
}

std::optional<std::string> declare_set(MeshTable& meshes, const std::string& mesh,
                                       const std::vector<std::string>& dims) {
  std::string name = join(dims, "_");
  constexpr size_t tries = 100;
  for (size_t i = 0; i < tries; ++i, name += "_") {
    if (declare_listed(meshes, mesh, dims, name)) return name;
  }
  return std::nullopt;
}

std::optional<std::string> declare_set(MeshTable& meshes, const Mesh& mesh, const DimSet& set) {
  std::vector<std::string> dims;
  for (const size_t m : set) dims.push_back(mesh.dims[m].name);
  return declare_set(meshes, mesh.name, dims);
}

bool runs_on_group(const Step& step) { return step.op != Op::exchange && !is_local(step.op); }

DimSet dims_of(const Step& step) {
  DimSet set;
  for (const SubAxis& a : step.mesh_dims) set.push_back(static_cast<size_t>(a.mesh_dim));
  return set;
}

bool runs_as_declared(const MeshTable& meshes, const Mesh& mesh, const Step& step) {
  return !runs_on_group(step) || step.mesh_dims.size() < 2 ||
         find_native_flatten(meshes, mesh, dims_of(step));
}

}  // namespace meshplan
