#include "plan/step_mesh.h"

#include <algorithm>

#include "plan/op_table.h"

namespace meshplan {

const Mesh& mesh_after(const MeshTable& meshes, const Request& request, const Step& step) {
  const Mesh& target = meshes.meshes[request.dst_mesh];
  return step.mesh == target.name ? target : meshes.meshes[request.src_mesh];
}

const Mesh& mesh_before(const MeshTable& meshes, const PlannedRedistribution& r, size_t index) {
  return index == 0 ? meshes.meshes[r.request.src_mesh]
                    : mesh_after(meshes, r.request, r.steps[index - 1]);
}

int64_t step_ranks(const Plan& plan, const PlannedRedistribution& r, const Step& step) {
  if (is_local(step.op)) return 1;
  if (row_of(step.op).scope != OpScope::mesh) return product_of_sizes(step.mesh_dims);
  const auto group = std::find_if(plan.groups.begin(), plan.groups.end(),
                                  [&](const PlanGroup& g) { return g.id == step.group; });
  return group != plan.groups.end() ? group->size
                                    : mesh_size(mesh_after(plan.meshes, r.request, step));
}

}  // namespace meshplan
