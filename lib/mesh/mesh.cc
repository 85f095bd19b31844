#include "mesh/mesh.h"

#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"
#include "mesh/build.h"

namespace meshplan {

std::vector<std::pair<int64_t, int64_t>> positions_by_rank(const Universe& universe) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  pairs.reserve(static_cast<size_t>(universe.world));
  for (int64_t position = 0; position < universe.world; ++position)
    pairs.emplace_back(rank_at(universe, position), position);
  if (!universe.ranks.empty()) std::sort(pairs.begin(), pairs.end());
  return pairs;
}

std::string to_text(const Universe& universe) {
  std::string text = "world of " + counted(universe.world, "rank");
  if (universe.ranks.empty()) return text + ", 0 to " + std::to_string(universe.world - 1);
  text += " mapped to";
  for (size_t i = 0; i < universe.ranks.size(); ++i) {
    if (i == 8) return text + " ...";
    text += " " + std::to_string(universe.ranks[i]);
  }
  return text;
}

std::string rank_runs(const Universe& universe) {
  constexpr int most_runs = 8;
  const auto run = [](int64_t first, int64_t last) {
    return std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
  };
  if (universe.ranks.empty()) return run(0, universe.world - 1);
  const std::vector<int64_t>& ranks = universe.ranks;
  std::string text;
  int runs = 0;
  for (size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    if (runs++ == most_runs) return text + " ...";
    while (++end < ranks.size() && ranks[end] - 1 == ranks[end - 1]) {
    }
    text += (text.empty() ? "" : " ") + run(ranks[begin], ranks[end - 1]);
  }
  return text;
}

bool same_devices(const Mesh& a, const Mesh& b) {
  if (a.universe != b.universe && !(*a.universe == *b.universe)) return false;
  return std::equal(
      a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
      [](const MeshDim& x, const MeshDim& y) { return x.size == y.size && x.layout == y.layout; });
}

int64_t mesh_size(const Mesh& mesh) {
  int64_t count = 1;
  for (const MeshDim& dim : mesh.dims) count *= dim.size;
  return count;
}

int64_t mesh_copies(const Mesh& mesh) { return mesh.universe->world / mesh_size(mesh); }

std::vector<int64_t> mesh_shape(const Mesh& mesh) {
  std::vector<int64_t> shape;
  shape.reserve(mesh.dims.size());
  for (const MeshDim& dim : mesh.dims) shape.push_back(dim.size);
  return shape;
}

std::vector<std::string> dim_names(const Mesh& mesh) {
  std::vector<std::string> names;
  names.reserve(mesh.dims.size());
  for (const MeshDim& dim : mesh.dims) names.push_back(dim.name);
  return names;
}

std::optional<size_t> find_dim(const Mesh& mesh, std::string_view name) {
  for (size_t i = 0; i < mesh.dims.size(); ++i) {
    if (mesh.dims[i].name == name) return i;
  }
  return std::nullopt;
}

Layout group_layout(const Mesh& mesh, const std::vector<size_t>& dims) {
  Layout joined;
  for (const size_t i : dims) {
    MESHPLAN_CHECK(i < mesh.dims.size(), "a group names dim " + std::to_string(i) +
                                             " of a mesh of " + std::to_string(mesh.dims.size()));
    const std::vector<Mode>& modes = mesh.dims[i].layout.modes;
    joined.modes.insert(joined.modes.end(), modes.begin(), modes.end());
  }
  return coalesce(joined);
}

Layout whole_layout(const Mesh& mesh) {
  Layout joined;
  for (const MeshDim& dim : mesh.dims)
    joined.modes.insert(joined.modes.end(), dim.layout.modes.begin(), dim.layout.modes.end());
  return coalesce(joined);
}

Layout copies_layout(const Mesh& mesh) {
  auto copies = complement(whole_layout(mesh), mesh.universe->world);
  MESHPLAN_CHECK(copies.ok(), "the copies of a mesh tile its universe: " + copies.error().message);
  return std::move(copies).value();
}

int64_t position_of(const Mesh& mesh, int64_t copy, int64_t index) {
  int64_t position = copy == 0 ? 0 : offset_at(copies_layout(mesh), copy);
  for (size_t i = mesh.dims.size(); i-- > 0;) {
    const MeshDim& dim = mesh.dims[i];
    position += offset_at(dim.layout, index % dim.size);
    index /= dim.size;
  }
  return position;
}

std::vector<int64_t> materialise(const Mesh& mesh) {
  std::vector<int64_t> ranks = offsets(whole_layout(mesh));
  if (!mesh.universe->ranks.empty()) {
    for (int64_t& rank : ranks) rank = rank_at(*mesh.universe, rank);
  }
  return ranks;
}

namespace {

// Checks that ranks are distinct and non-negative. The identity becomes an empty vector, so that
// equal rank maps are equal values.
Result<std::vector<int64_t>> checked_ranks(std::vector<int64_t> ranks, int64_t world,
                                           const std::string& place) {
  if (std::ssize(ranks) != world) {
    return bad_input(place + " lists " + std::to_string(ranks.size()) + " ranks for a world of " +
                     std::to_string(world));
  }
  bool ascending = true;
  bool identity = true;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0)
      return bad_input(place + " lists rank " + std::to_string(ranks[i]) + "; ranks are 0 or more");
    if (ranks[i] > last_rank)
      return bad_input(place + " lists rank " + std::to_string(ranks[i]) + "; ranks are " +
                       std::to_string(last_rank) + " at most");
    if (i > 0 && ranks[i] <= ranks[i - 1]) ascending = false;
    if (ranks[i] != static_cast<int64_t>(i)) identity = false;
  }
  if (identity) return std::vector<int64_t>{};
  if (!ascending) {
    std::vector<int64_t> sorted = ranks;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      return bad_input(place + " lists rank " + std::to_string(*twice) + " twice");
  }
  return ranks;
}

}  // namespace

Result<Mesh> make_mesh(std::string name, const std::vector<std::pair<std::string, int64_t>>& dims,
                       std::vector<int64_t> ranks) {
  const std::string place = name.empty() ? "the mesh" : "mesh " + quoted(name);
  Mesh mesh;
  int64_t world = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const auto& [dim, extent] = dims[i];
    if (dim.empty()) return bad_input("dim " + std::to_string(i) + " of " + place + " has no name");
    if (extent < 1)
      return bad_input("dim " + quoted(dim) + " of " + place + " has size " +
                       std::to_string(extent) + "; sizes are 1 or more");
    if (find_dim(mesh, dim))
      return bad_input(place + " has two dims " + quoted(dim) + "; give each its own name");
    mesh.dims.push_back({dim, extent, extent > 1 ? Layout{{{extent, world}}} : Layout{}});
    const auto product = checked_mul(world, extent);
    if (!product)
      return bad_input("the sizes of the dims of " + place + " multiply to more than 64 bits");
    world = *product;
  }
  std::reverse(mesh.dims.begin(), mesh.dims.end());
  if (!ranks.empty()) {
    auto checked = checked_ranks(std::move(ranks), world, place);
    if (!checked) return checked.error();
    ranks = std::move(checked).value();
  }
  mesh.name = std::move(name);
  mesh.universe = std::make_shared<const Universe>(Universe{world, std::move(ranks)});
  return mesh;
}

std::string to_text(const Mesh& mesh) {
  std::vector<std::string> parts;
  parts.reserve(mesh.dims.size());
  for (const MeshDim& dim : mesh.dims)
    parts.push_back(escaped(dim.name) + " " + std::to_string(dim.size));
  return join(parts, " x ");
}

}  // namespace meshplan
