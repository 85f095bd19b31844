#include "diff/declarations.h"

#include <algorithm>

#include "base/text.h"

namespace meshplan {
namespace {

using Kind = DeclarationChange::Kind;

std::string tensor_text(const TensorMeta& tensor) {
  std::vector<std::string> extents;
  for (const int64_t extent : tensor.shape) extents.push_back(std::to_string(extent));
  return std::string(to_text(tensor.dtype)) + "[" + join(extents, ", ") + "]";
}

void compare_mesh(const Mesh& before, const Mesh& after, std::vector<DeclarationChange>& changes) {
  if (dim_names(before) != dim_names(after)) {
    changes.push_back({Kind::mesh,
                       "mesh " + after.name + " is " + to_text(after) + "; was " + to_text(before),
                       after.name});
    return;
  }
  for (size_t i = 0; i < after.dims.size(); ++i) {
    const MeshDim& was = before.dims[i];
    const MeshDim& is = after.dims[i];
    const std::string dim =
        "mesh dim " + is.name + (after.name == "mesh" ? "" : " of " + after.name);
    if (was.size != is.size) {
      changes.push_back(
          {Kind::mesh,
           dim + " has size " + std::to_string(is.size) + "; was " + std::to_string(was.size),
           after.name});
    }
  }
  // other strides follow from other sizes
  if (!changes.empty() && changes.back().mesh == after.name) return;
  for (size_t i = 0; i < after.dims.size(); ++i) {
    const MeshDim& was = before.dims[i];
    const MeshDim& is = after.dims[i];
    if (was.layout != is.layout) {
      changes.push_back({Kind::mesh,
                         "mesh dim " + is.name + " of " + after.name + " has layout " +
                             to_text(is.layout) + "; was " + to_text(was.layout),
                         after.name});
    }
    if (was.group_options != is.group_options) {
      changes.push_back(
          {Kind::mesh, "mesh dim " + is.name + " of " + after.name + " has different group options",
           after.name});
    }
  }
}

// Universes are the same where their roots have the same name, or where both files have one only. A
// new one is told by its root.
void compare_universes(const MeshTable& before, const MeshTable& after,
                       std::vector<DeclarationChange>& changes) {
  const auto olds = split_by_universe(before);
  const auto news = split_by_universe(after);
  if (olds.size() == 1 && news.size() == 1) {
    const Universe& was = *before.meshes.front().universe;
    const Universe& is = *after.meshes.front().universe;
    if (was.world != is.world) {
      changes.push_back(
          {Kind::mesh,
           "the world has " + counted(is.world, "rank") + "; had " + with_commas(was.world), ""});
    } else if (!(was == is)) {
      changes.push_back({Kind::mesh, "the ranks are in another order", ""});
    }
    return;
  }
  for (const MeshTable& part : news) {
    const Mesh& root = part.meshes.front();
    const auto known = find_mesh(before, root.name);
    if (!known || &root_of(before, before.meshes[*known]) != &before.meshes[*known]) continue;
    const Universe& was = *before.meshes[*known].universe;
    if (was == *root.universe) continue;
    changes.push_back({Kind::mesh,
                       "universe " + root.name + " has ranks " + rank_runs(*root.universe) +
                           "; had " + rank_runs(was),
                       ""});
  }
}

void compare_meshes(const MeshTable& before, const MeshTable& after,
                    std::vector<DeclarationChange>& changes) {
  compare_universes(before, after, changes);
  for (const Mesh& mesh : after.meshes) {
    const auto old = find_mesh(before, mesh.name);
    if (old) {
      compare_mesh(before.meshes[*old], mesh, changes);
    } else {
      changes.push_back(
          {Kind::mesh, "mesh " + mesh.name + " (" + to_text(mesh) + ") is new", mesh.name});
    }
  }
  for (const Mesh& mesh : before.meshes) {
    if (!find_mesh(after, mesh.name))
      changes.push_back(
          {Kind::mesh, "mesh " + mesh.name + " (" + to_text(mesh) + ") is removed", mesh.name});
  }
}

bool joins_same_dims(const Flatten& a, const Flatten& b) {
  return a.of == b.of && a.dims == b.dims;
}

// By flatten of `after` the one of `before` that it is, each taken once: of those that join the
// same dims of the same mesh (their layouts follow the mesh's) first the one with its name.
std::vector<const Flatten*> match_flattens(const std::vector<Flatten>& before,
                                           const std::vector<Flatten>& after) {
  std::vector<const Flatten*> found(after.size());
  std::vector<bool> taken(before.size());
  for (const bool by_name : {true, false}) {
    for (size_t j = 0; j < after.size(); ++j) {
      for (size_t i = 0; i < before.size() && found[j] == nullptr; ++i) {
        if (taken[i] || !joins_same_dims(before[i], after[j])) continue;
        if (by_name && before[i].name != after[j].name) continue;
        found[j] = &before[i];
        taken[i] = true;
      }
    }
  }
  return found;
}

void compare_flattens(const MeshTable& before, const MeshTable& after,
                      std::vector<DeclarationChange>& changes) {
  const auto olds = match_flattens(before.flattens, after.flattens);
  for (size_t j = 0; j < after.flattens.size(); ++j) {
    const Flatten& flatten = after.flattens[j];
    const std::string text = "flatten " + flatten.name + " over " + join(flatten.dims, ", ");
    const auto change = [&](const std::string& what) {
      changes.push_back({Kind::flatten, text + what, flatten.of, flatten.dims});
    };
    if (olds[j] == nullptr) {
      change(" is declared");
      continue;
    }
    if (olds[j]->name != flatten.name) change(" was called " + olds[j]->name);
    if (olds[j]->group_options != flatten.group_options) change(" has different group options");
  }
  for (const Flatten& flatten : before.flattens) {
    if (std::find(olds.begin(), olds.end(), &flatten) != olds.end()) continue;
    changes.push_back(
        {Kind::flatten,
         "flatten " + flatten.name + " over " + join(flatten.dims, ", ") + " is no longer declared",
         flatten.of, flatten.dims});
  }
}

template <class Value>
void compare_option(const std::string& name, const Value& before, const Value& after,
                    std::vector<DeclarationChange>& changes) {
  if (before != after)
    changes.push_back({Kind::options, name + " is " + after + "; was " + before, ""});
}

std::string flag_text(bool flag) { return flag ? "on" : "off"; }
std::string number_text(const std::optional<int64_t>& number) {
  return number ? std::to_string(*number) : "not given";
}

void compare_options(const PlanOptions& before, const PlanOptions& after,
                     std::vector<DeclarationChange>& changes) {
  const auto option = [&](const std::string& name, const std::string& was, const std::string& is) {
    compare_option(name, was, is, changes);
  };
  option("the planner", to_text(before.planner), to_text(after.planner));
  option("the set of rules", to_text(before.rules), to_text(after.rules));
  option("the policy of groups", to_text(before.groups), to_text(after.groups));
  option("max_memory_bytes", std::to_string(before.max_memory_bytes),
         std::to_string(after.max_memory_bytes));
  option("one_reduction", flag_text(before.one_reduction), flag_text(after.one_reduction));
  option("world_group", to_text(before.world_group), to_text(after.world_group));
  option("merging", flag_text(before.merge), flag_text(after.merge));
  if (before.planner == PlannerKind::graph && after.planner == PlannerKind::graph) {
    option("the cost model", to_text(before.cost_model), to_text(after.cost_model));
  }
  if (before.max_groups != after.max_groups)
    option("max-groups", std::to_string(before.max_groups), std::to_string(after.max_groups));
  option("ranks-per-host", number_text(before.ranks_per_host), number_text(after.ranks_per_host));
}

std::string topology_name(const Topology& topology) {
  if (!topology.name.empty()) return topology.name;
  return topology.source.empty() ? "a custom one" : topology.source;
}

bool uses(const Plan& plan, const PlannedRedistribution& r, const std::vector<std::string>& dims) {
  for (const Warning& warning : r.warnings) {
    if (warning.dims == dims) return true;
  }
  for (const Step& step : r.steps) {
    if (!is_collective(step.op)) continue;
    const Mesh& mesh = plan.meshes.meshes[r.request.src_mesh];
    std::vector<std::string> names;
    for (const SubAxis& sub_axis : step.mesh_dims) {
      if (static_cast<size_t>(sub_axis.mesh_dim) < mesh.dims.size())
        names.push_back(mesh.dims[sub_axis.mesh_dim].name);
    }
    if (names == dims) return true;
  }
  return false;
}

}  // namespace

std::vector<DeclarationChange> compare_declarations(const Plan& old_plan, const Plan& new_plan) {
  std::vector<DeclarationChange> changes;
  compare_meshes(old_plan.meshes, new_plan.meshes, changes);
  compare_flattens(old_plan.meshes, new_plan.meshes, changes);
  compare_options(old_plan.options, new_plan.options, changes);
  if (!(old_plan.topology == new_plan.topology)) {
    const std::string is = topology_name(new_plan.topology);
    const std::string was = topology_name(old_plan.topology);
    changes.push_back({Kind::topology,
                       is == was ? "the topology (" + is + ") has different values"
                                 : "the topology is " + is + "; was " + was,
                       ""});
  }
  return changes;
}

bool concerns(const DeclarationChange& change, const Plan& old_plan,
              const PlannedRedistribution& before, const Plan& new_plan,
              const PlannedRedistribution& after) {
  if (change.kind == Kind::flatten)
    return uses(old_plan, before, change.dims) || uses(new_plan, after, change.dims);
  if (change.kind != Kind::mesh || change.mesh.empty()) return true;
  const auto on = [&](const Plan& plan, const PlannedRedistribution& r) {
    return plan.meshes.meshes[r.request.src_mesh].name == change.mesh ||
           plan.meshes.meshes[r.request.dst_mesh].name == change.mesh;
  };
  return on(old_plan, before) || on(new_plan, after);
}

std::string request_text(const Plan& plan, const PlannedRedistribution& r) {
  const Mesh& src = plan.meshes.meshes[r.request.src_mesh];
  const Mesh& dst = plan.meshes.meshes[r.request.dst_mesh];
  std::string text = tensor_text(r.request.tensor) + " " + to_text(r.request.src, mesh_shape(src)) +
                     " on " + src.name + " -> " + (r.request.any_dst_order ? "any order of " : "") +
                     to_text(r.request.dst, mesh_shape(dst)) + " on " + dst.name;
  if (r.request.reduce_dtype)
    text += std::string(", reduced in ") + to_text(*r.request.reduce_dtype);
  if (r.request.direction == Direction::backward) text += ", backward";
  return text;
}

std::vector<std::string> request_changes(const Plan& old_plan, const PlannedRedistribution& before,
                                         const Plan& new_plan, const PlannedRedistribution& after) {
  const Request& was = before.request;
  const Request& is = after.request;
  std::vector<std::string> changes;
  const auto change = [&](const std::string& what, const std::string& old_text,
                          const std::string& new_text) {
    if (old_text != new_text) changes.push_back(what + " is " + new_text + "; was " + old_text);
  };
  const auto state = [](const Plan& plan, size_t mesh, const State& s) {
    return to_text(s, mesh_shape(plan.meshes.meshes[mesh])) + " on " +
           plan.meshes.meshes[mesh].name;
  };
  const auto dtype = [](const std::optional<DType>& d) {
    return std::string(d ? to_text(*d) : "the tensor's");
  };
  change("the id", was.id, is.id);
  change("the tensor", tensor_text(was.tensor), tensor_text(is.tensor));
  change("the source", state(old_plan, was.src_mesh, was.src),
         state(new_plan, is.src_mesh, is.src));
  change("the target", state(old_plan, was.dst_mesh, was.dst),
         state(new_plan, is.dst_mesh, is.dst));
  change("the target's order", was.any_dst_order ? "any" : "given",
         is.any_dst_order ? "any" : "given");
  change("the count", with_commas(was.count), with_commas(is.count));
  change("the dtype of reductions", dtype(was.reduce_dtype), dtype(is.reduce_dtype));
  change("the direction", was.direction == Direction::backward ? "backward" : "forward",
         is.direction == Direction::backward ? "backward" : "forward");
  return changes;
}

std::vector<std::string> listing_changes(const PlannedRedistribution& before,
                                         const PlannedRedistribution& after) {
  std::vector<std::string> changes;
  const auto codes = [](const PlannedRedistribution& r) {
    std::vector<std::string> found;
    for (const AuditFinding& finding : r.audit) found.push_back(finding.code);
    return found.empty() ? std::string("none") : join(found, ", ");
  };
  if (before.audit != after.audit) {
    const std::string was = codes(before);
    const std::string is = codes(after);
    changes.push_back(was == is ? "the audit's findings (" + is + ") say something else"
                                : "the audit's findings are " + is + "; were " + was);
  }
  if (before.alternatives != after.alternatives) {
    const auto was = std::ssize(before.alternatives);
    const auto is = std::ssize(after.alternatives);
    changes.push_back(was == is ? "its alternatives are others"
                                : counted(is, "alternative") + " listed; " + with_commas(was) +
                                      (was == 1 ? " was" : " were"));
  }
  return changes;
}

}  // namespace meshplan
