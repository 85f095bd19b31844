#include "mesh/mesh_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/int_math.h"
#include "base/text.h"
#include "mesh/build.h"

namespace meshplan {
namespace {

Status free_name(const MeshTable& table, const std::string& name) {
  if (name.empty()) return bad_input("a mesh has no name");
  if (find_mesh(table, name))
    return bad_input("a mesh called " + quoted(name) +
                     " exists already; give this one another name");
  return Done{};
}

// The mesh called `of`. The pointer holds until the table grows.
Result<const Mesh*> operand(const MeshTable& table, std::string_view of) {
  const auto index = find_mesh(table, of);
  if (index) return &table.meshes[*index];
  std::vector<std::string> names;
  for (const Mesh& mesh : table.meshes) names.push_back(mesh.name);
  const auto near = nearest(of, names);
  return bad_input("there is no mesh " + quoted(of) +
                   (near ? "; did you mean " + quoted(*near) + "?"
                         : "; the meshes so far are " + quoted_list(names)));
}

// Indices of distinct dims of a mesh, in the order named.
Result<std::vector<size_t>> pick_dims(const Mesh& mesh, const std::vector<std::string>& names) {
  if (names.empty()) return bad_input("no dim of mesh " + quoted(mesh.name) + " is named");
  std::vector<size_t> picked;
  for (const std::string& name : names) {
    const auto index = find_dim(mesh, name);
    if (!index) {
      const auto near = nearest(name, dim_names(mesh));
      return bad_input("mesh " + quoted(mesh.name) + " has no dim " + quoted(name) +
                       (near ? "; did you mean " + quoted(*near) + "?"
                             : "; its dims are " + quoted_list(dim_names(mesh))));
    }
    if (std::find(picked.begin(), picked.end(), *index) != picked.end())
      return bad_input("dim " + quoted(name) + " is named twice");
    picked.push_back(*index);
  }
  return picked;
}

// The order rule of slices, and of flattens that no operation makes: strides descend, ignoring dims
// of size 1.
Status check_order(const Mesh& mesh, const std::vector<size_t>& dims, const char* operation) {
  Layout joined;
  for (const size_t i : dims)
    joined.modes.insert(joined.modes.end(), mesh.dims[i].layout.modes.begin(),
                        mesh.dims[i].layout.modes.end());
  if (is_sorted(joined)) return Done{};
  std::vector<std::string> names;
  std::string layouts;
  for (const size_t i : dims) {
    names.push_back(mesh.dims[i].name);
    layouts += (layouts.empty() ? "" : ", ") + escaped(mesh.dims[i].name) + " " +
               to_text(mesh.dims[i].layout);
  }
  return bad_input(
      std::string("cannot ") + operation + " " + quoted_list(names) + " of mesh " +
      quoted(mesh.name) + ": the strides must descend and are " + layouts +
      "; list the dims outermost first, or reorder them with \"transpose\": " + quoted_list(names));
}

std::string name_and_layout(const MeshDim& dim) {
  return quoted(dim.name) + " " + to_text(dim.layout);
}

Status check_distinct_names(const Mesh& mesh) {
  for (size_t i = 0; i < mesh.dims.size(); ++i) {
    if (mesh.dims[i].name.empty())
      return bad_input("dim " + std::to_string(i) + " of mesh " + quoted(mesh.name) +
                       " has no name");
    for (size_t j = 0; j < i; ++j) {
      if (mesh.dims[i].name == mesh.dims[j].name) {
        return bad_input("mesh " + quoted(mesh.name) + " would have two dims " +
                         quoted(mesh.dims[i].name) + "; give each its own name");
      }
    }
  }
  return Done{};
}

// A view of `base` with these dims. The group options of the operation, if any, replace those of
// the dims.
Mesh view_of(std::string name, const Mesh& base, std::vector<MeshDim> dims,
             std::string group_options) {
  Mesh mesh;
  mesh.name = std::move(name);
  mesh.universe = base.universe;
  mesh.dims = std::move(dims);
  if (!group_options.empty()) {
    for (MeshDim& dim : mesh.dims) dim.group_options = group_options;
  }
  mesh.group_options = std::move(group_options);
  return mesh;
}

std::vector<MeshDim> dims_at(const Mesh& mesh, const std::vector<size_t>& picked) {
  std::vector<MeshDim> dims;
  dims.reserve(picked.size());
  for (const size_t i : picked) dims.push_back(mesh.dims[i]);
  return dims;
}

// The flatten that these dims declare; empty if it already exists.
Result<std::optional<Flatten>> new_flatten(const MeshTable& table, const Mesh& of,
                                           const std::vector<std::string>& dims, std::string name,
                                           const std::string& group_options) {
  const auto picked = pick_dims(of, dims);
  if (!picked) return picked.error();
  if (name.empty()) name = join(dims, "_");
  Flatten flatten{name, dims, of.name, group_layout(of, *picked), group_options, of.universe};
  if (flatten.group_options.empty()) {
    const std::string& first = of.dims[picked->front()].group_options;
    const bool alike = std::all_of(picked->begin(), picked->end(),
                                   [&](size_t i) { return of.dims[i].group_options == first; });
    if (alike) flatten.group_options = first;
  }
  if (of.dims.size() == 1 && of.dims[0].name == name) return std::optional<Flatten>();
  for (const Flatten& known : table.flattens) {
    if (known.universe != of.universe || known.name != name) continue;
    if (known.layout == flatten.layout && known.group_options == flatten.group_options)
      return std::optional<Flatten>();
    const std::string clash =
        known.layout == flatten.layout
            ? "other group options"
            : "layout " + to_text(known.layout) + ", not " + to_text(flatten.layout);
    return bad_input("the name " + quoted(name) + " is taken by the flatten of " +
                     quoted_list(known.dims) + " of mesh " + quoted(known.of) + " with " + clash +
                     "; give this one another name");
  }
  const Mesh& root = root_of(table, of);
  if (find_dim(root, name)) {
    return bad_input("the name " + quoted(name) + " is taken by a dim of mesh " +
                     quoted(root.name) + "; give the flatten of " + quoted_list(dims) +
                     " another name");
  }
  return std::optional<Flatten>(std::move(flatten));
}

// Puts a mesh or flatten behind the last one of its universe.
template <class Entry>
void add_in_universe(std::vector<Entry>& list, Entry entry) {
  const auto last = std::find_if(list.rbegin(), list.rend(), [&](const Entry& known) {
    return known.universe == entry.universe;
  });
  list.insert(last == list.rend() ? list.end() : last.base(), std::move(entry));
}

}  // namespace

std::optional<size_t> find_mesh(const MeshTable& table, std::string_view name) {
  for (size_t i = 0; i < table.meshes.size(); ++i) {
    if (table.meshes[i].name == name) return i;
  }
  return std::nullopt;
}

Status add_root(MeshTable& table, std::string name, int64_t world, std::vector<int64_t> ranks,
                const std::vector<std::pair<std::string, int64_t>>& dims,
                std::string group_options) {
  if (const auto named = free_name(table, name); !named) return named.error();
  if (world < 1)
    return bad_input("mesh " + quoted(name) + " has a world of " + std::to_string(world) +
                     " ranks; expected 1 or more");
  if (!ranks.empty() && std::ssize(ranks) != world) {
    return bad_input("mesh " + quoted(name) + " lists " + std::to_string(ranks.size()) +
                     " ranks for a world of " + std::to_string(world));
  }
  auto mesh = make_mesh(
      name, dims.empty() ? std::vector<std::pair<std::string, int64_t>>{{name, world}} : dims);
  if (!mesh) return mesh.error();
  if (mesh->universe->world != world) {
    return bad_input("the dims of mesh " + quoted(name) + " multiply to " +
                     std::to_string(mesh->universe->world) + "; its world has " +
                     std::to_string(world) + " ranks");
  }
  if (!ranks.empty()) {
    auto mapped = make_mesh(
        name, dims.empty() ? std::vector<std::pair<std::string, int64_t>>{{name, world}} : dims,
        std::move(ranks));
    if (!mapped) return mapped.error();
    mesh = std::move(mapped);
  }
  std::vector<MeshDim> made = mesh->dims;
  table.meshes.push_back(
      view_of(std::move(name), *mesh, std::move(made), std::move(group_options)));
  return Done{};
}

namespace {

// A view of some dims of a mesh in the order given: of those of base_of(mesh), which check(mesh,
// base, dims) may refuse.
template <typename BaseOf, typename Check>
Status add_picked(MeshTable& table, std::string name, std::string_view of,
                  const std::vector<std::string>& dims, std::string group_options, BaseOf base_of,
                  Check check) {
  if (const auto named = free_name(table, name); !named) return named.error();
  const auto mesh = operand(table, of);
  if (!mesh) return mesh.error();
  const Mesh base = base_of(**mesh);
  const auto picked = pick_dims(base, dims);
  if (!picked) return picked.error();
  if (const Status allowed = check(**mesh, base, *picked); !allowed) return allowed.error();
  add_in_universe(table.meshes,
                  view_of(std::move(name), base, dims_at(base, *picked), std::move(group_options)));
  return Done{};
}

}  // namespace

Mesh with_flattened_dims(const MeshTable& table, const Mesh& mesh) {
  Mesh all = mesh;
  if (&root_of(table, mesh) != &mesh) return all;
  for (const Flatten& flatten : table.flattens) {
    if (flatten.universe != mesh.universe || find_dim(all, flatten.name)) continue;
    all.dims.push_back({flatten.name, size(flatten.layout), flatten.layout, flatten.group_options});
  }
  return all;
}

std::optional<std::pair<size_t, size_t>> dims_sharing_ranks(const Mesh& mesh,
                                                            const std::vector<size_t>& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto both =
          make_layout(join_layouts({mesh.dims[dims[j]].layout, mesh.dims[dims[i]].layout}).modes);
      // two dims with more ranks than 64 bits count share some, too
      if (!both || !is_injective(*both)) return std::pair(dims[j], dims[i]);
    }
  }
  return std::nullopt;
}

Status add_slice(MeshTable& table, std::string name, std::string_view of,
                 const std::vector<std::string>& dims, std::string group_options) {
  // All dims as they are is the mesh itself, whatever the order of a concatenated one.
  const auto check = [](const Mesh& mesh, const Mesh& base,
                        const std::vector<size_t>& picked) -> Status {
    const bool all = picked.size() == mesh.dims.size() && picked.back() == mesh.dims.size() - 1;
    if (all && std::is_sorted(picked.begin(), picked.end())) return Done{};
    if (const auto both = dims_sharing_ranks(base, picked)) {
      return bad_input("cannot slice dims " + name_and_layout(base.dims[both->first]) + " and " +
                       name_and_layout(base.dims[both->second]) + " of mesh " + quoted(base.name) +
                       ": they share ranks");
    }
    return check_order(base, picked, "slice");
  };
  const auto base_of = [&](const Mesh& mesh) { return with_flattened_dims(table, mesh); };
  return add_picked(table, std::move(name), of, dims, std::move(group_options), base_of, check);
}

Status add_flatten(MeshTable& table, std::string name, std::string_view of,
                   const std::vector<std::string>& dims, std::string dim,
                   std::string group_options) {
  const auto base = operand(table, of);
  if (!base) return base.error();
  if (dim.empty()) dim = join(dims, "_");
  if (name.empty()) name = dim;
  auto flatten = new_flatten(table, **base, dims, dim, group_options);
  if (!flatten) return flatten.error();
  const auto picked = pick_dims(**base, dims);
  if (!picked) return picked.error();
  const Layout layout = group_layout(**base, *picked);
  MeshDim made{dim, size(layout), layout, {}};
  if (*flatten) made.group_options = (*flatten)->group_options;
  for (const Flatten& known : table.flattens) {
    if (!*flatten && known.universe == (*base)->universe && known.name == dim &&
        known.layout == layout)
      made.group_options = known.group_options;
  }
  if (!*flatten && (*base)->dims.size() == 1 && (*base)->dims[0].name == dim)
    made.group_options = (*base)->dims[0].group_options;
  Mesh mesh = view_of(name, **base, {std::move(made)}, std::move(group_options));
  if (const auto known = find_mesh(table, name)) {
    if (table.meshes[*known].universe != mesh.universe || !(table.meshes[*known].dims == mesh.dims))
      return free_name(table, name);
  } else {
    add_in_universe(table.meshes, std::move(mesh));
  }
  if (*flatten) add_in_universe(table.flattens, std::move(**flatten));
  return Done{};
}

Status add_unflatten(MeshTable& table, std::string name, std::string_view of, std::string_view dim,
                     const std::vector<int64_t>& sizes, const std::vector<std::string>& dims,
                     std::string group_options) {
  if (const auto named = free_name(table, name); !named) return named.error();
  const auto base = operand(table, of);
  if (!base) return base.error();
  const auto picked = pick_dims(**base, {std::string(dim)});
  if (!picked) return picked.error();
  if (sizes.size() != dims.size() || sizes.empty()) {
    return bad_input("the unflatten of " + quoted(dim) + " gives " + std::to_string(sizes.size()) +
                     " sizes and " + std::to_string(dims.size()) +
                     " names; it needs one name a size");
  }
  const size_t at = picked->front();
  const MeshDim& whole = (*base)->dims[at];
  const auto product = checked_product(sizes);
  const bool positive =
      std::all_of(sizes.begin(), sizes.end(), [](int64_t extent) { return extent > 0; });
  if (!positive || !product || *product != whole.size) {
    std::vector<std::string> factors;
    for (const int64_t extent : sizes) factors.push_back(std::to_string(extent));
    return bad_input("cannot unflatten dim " + quoted(dim) + " of size " +
                     std::to_string(whole.size) + ": " + join(factors, " * ") + " is " +
                     (product ? std::to_string(*product) : "more than 64 bits") +
                     "; the sizes must be positive and multiply to " + std::to_string(whole.size));
  }
  const auto parts = split_layout(whole.layout, sizes);
  if (!parts) return parts.error();
  std::vector<MeshDim> made((*base)->dims.begin(),
                            (*base)->dims.begin() + static_cast<std::ptrdiff_t>(at));
  for (size_t i = 0; i < sizes.size(); ++i)
    made.push_back({dims[i], sizes[i], coalesce((*parts)[i]), whole.group_options});
  made.insert(made.end(), (*base)->dims.begin() + static_cast<std::ptrdiff_t>(at) + 1,
              (*base)->dims.end());
  Mesh mesh = view_of(std::move(name), **base, std::move(made), std::move(group_options));
  if (const auto distinct = check_distinct_names(mesh); !distinct) return distinct.error();
  add_in_universe(table.meshes, std::move(mesh));
  return Done{};
}

Status add_concatenate(MeshTable& table, std::string name, const std::vector<std::string>& meshes,
                       std::string group_options) {
  if (const auto named = free_name(table, name); !named) return named.error();
  if (meshes.empty())
    return bad_input("mesh " + quoted(name) + " concatenates no meshes; name one or more");
  std::vector<MeshDim> made;
  const Mesh* first = nullptr;
  for (const std::string& part : meshes) {
    const auto base = operand(table, part);
    if (!base) return base.error();
    if (first == nullptr) first = *base;
    if ((*base)->universe != first->universe) {
      return bad_input("cannot concatenate " + quoted_list(meshes) + ": " + quoted(first->name) +
                       " is in the universe of " + quoted(root_of(table, *first).name) + " and " +
                       quoted((*base)->name) + " in that of " +
                       quoted(root_of(table, **base).name) +
                       "; make a mesh of both by another root, over all their ranks");
    }
    made.insert(made.end(), (*base)->dims.begin(), (*base)->dims.end());
  }
  Mesh mesh = view_of(std::move(name), *first, std::move(made), std::move(group_options));
  // One overlap is named by its dims; then the whole must tile the world.
  std::vector<Layout> parts;
  std::vector<size_t> all(mesh.dims.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (const auto both = dims_sharing_ranks(mesh, all)) {
    return bad_input("cannot concatenate " + quoted_list(meshes) + ": dims " +
                     name_and_layout(mesh.dims[both->first]) + " and " +
                     name_and_layout(mesh.dims[both->second]) + " share ranks");
  }
  for (const MeshDim& dim : mesh.dims) parts.push_back(dim.layout);
  if (const auto distinct = check_distinct_names(mesh); !distinct) return distinct.error();
  const auto whole = make_layout(join_layouts(parts).modes);
  if (!whole)
    return bad_input("cannot concatenate " + quoted_list(meshes) + ": " + whole.error().message);
  const auto copies = complement(*whole, mesh.universe->world);
  if (!copies)
    return bad_input("cannot concatenate " + quoted_list(meshes) + ": " + copies.error().message);
  add_in_universe(table.meshes, std::move(mesh));
  return Done{};
}

Status add_transpose(MeshTable& table, std::string name, std::string_view of,
                     const std::vector<std::string>& dims, std::string group_options) {
  return add_picked(
      table, std::move(name), of, dims, std::move(group_options),
      [](const Mesh& mesh) { return mesh; },
      [](const Mesh&, const Mesh&, const auto&) { return Status(Done{}); });
}

Status declare_flatten(MeshTable& table, std::string_view of, const std::vector<std::string>& dims,
                       std::string name) {
  const auto base = operand(table, of);
  if (!base) return base.error();
  const auto picked = pick_dims(**base, dims);
  if (!picked) return picked.error();
  const auto ordered = check_order(**base, *picked, "flatten");
  if (!ordered) return ordered.error();
  return declare_listed(table, of, dims, std::move(name));
}

Status declare_listed(MeshTable& table, std::string_view of, const std::vector<std::string>& dims,
                      std::string name) {
  const auto base = operand(table, of);
  if (!base) return base.error();
  auto flatten = new_flatten(table, **base, dims, std::move(name), {});
  if (!flatten) return flatten.error();
  if (*flatten) add_in_universe(table.flattens, std::move(**flatten));
  return Done{};
}

const Flatten* find_flatten(const MeshTable& table, const Mesh& mesh,
                            const std::vector<size_t>& dims) {
  std::vector<size_t> ordered = dims;
  std::sort(ordered.begin(), ordered.end());
  const Layout layout = group_layout(mesh, ordered);
  for (const Flatten& flatten : table.flattens) {
    if (flatten.universe == mesh.universe && flatten.layout == layout) return &flatten;
  }
  return nullptr;
}

std::optional<Flatten> find_native_flatten(const MeshTable& table, const Mesh& mesh,
                                           const std::vector<size_t>& dims) {
  if (const Flatten* declared = find_flatten(table, mesh, dims)) return *declared;
  const Layout layout = group_layout(mesh, dims);
  for (const Flatten& flatten : table.flattens) {
    if (flatten.universe == mesh.universe && has_same_offsets(flatten.layout, layout))
      return flatten;
  }
  const Mesh& root = root_of(table, mesh);
  if (root.dims.size() != 1 || !has_same_offsets(root.dims[0].layout, layout)) return std::nullopt;
  return Flatten{root.dims[0].name,   {root.dims[0].name},        root.name,
                 root.dims[0].layout, root.dims[0].group_options, root.universe};
}

}  // namespace meshplan
