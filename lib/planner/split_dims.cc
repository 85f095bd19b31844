#include "planner/split_dims.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "planner/flatten_sets.h"
#include "planner/priced_steps.h"

namespace meshplan {
namespace {

// The parts of dims that collectives run on, each once, in their order.
std::vector<SubAxis> parts_in(const std::vector<Step>& steps, std::span<const int64_t> sizes) {
  std::vector<SubAxis> parts;
  for (const Step& step : steps) {
    if (!runs_on_group(step)) continue;
    for (const SubAxis& part : step.mesh_dims) {
      if (part.size != sizes[static_cast<size_t>(part.mesh_dim)] &&
          std::find(parts.begin(), parts.end(), part) == parts.end())
        parts.push_back(part);
    }
  }
  return parts;
}

// "tp split 3 x 4"
std::string splits_text(const std::vector<SubAxis>& parts, const Mesh& mesh) {
  std::map<int32_t, std::set<int64_t>> cuts;  // by mesh dim: into how many parts, coarsest first
  for (const SubAxis& part : parts)
    cuts[part.mesh_dim].insert({part.before, part.before * part.size});
  std::vector<std::string> splits;
  for (auto& [dim, cut_into] : cuts) {
    cut_into.insert(mesh.dims[static_cast<size_t>(dim)].size);
    std::vector<std::string> factors;
    int64_t before = 1;
    for (const int64_t cut : cut_into) {
      if (cut > 1) factors.push_back(std::to_string(cut / before));
      before = cut;
    }
    splits.push_back(mesh.dims[static_cast<size_t>(dim)].name + " split " + join(factors, " x "));
  }
  return join(splits, ", ");
}

// "tp:(3)4, tp:(1)3"
std::string groups_text(const std::vector<SubAxis>& parts, const Mesh& mesh,
                        std::span<const int64_t> sizes) {
  const std::vector<std::string> names = dim_names(mesh);
  std::vector<std::string> groups;
  for (const SubAxis& part : parts) groups.push_back(to_text(part, names, sizes));
  return join(groups, ", ");
}

}  // namespace

std::optional<AuditFinding> split_saves(const MeshTable& meshes, const Topology& topology,
                                        const PlannedRedistribution& on_whole_dims,
                                        const PlannedRedistribution& on_any_groups) {
  const Totals& whole = on_whole_dims.totals;
  const Totals& any = on_any_groups.totals;
  const Mesh& mesh = meshes.meshes[on_any_groups.request.src_mesh];
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  const std::vector<SubAxis> parts = parts_in(on_any_groups.steps, sizes);
  if (parts.empty()) return std::nullopt;
  auto found = surely_better(meshes, topology, on_whole_dims, on_any_groups);
  if (!found) return std::nullopt;
  found->code = "A0409";
  found->kind = "split_saves";
  found->message = "with " + splits_text(parts, mesh) + " the plan takes " +
                   human_ns(ns_of_ps(any.predicted_ps)) + ", with groups " +
                   groups_text(parts, mesh, sizes) + "; on whole mesh dims " +
                   human_ns(ns_of_ps(whole.predicted_ps)) +
                   "; plan with --groups any for its steps";
  return found;
}

}  // namespace meshplan
