// Laws of meshes over all roots of up to four dims of sizes 1, 2, 3, 4 and 6, and every way to view them by one operation.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "mesh/build.h"
#include "mesh/coordinates.h"
#include "mesh/groups.h"

namespace meshplan {
namespace {

constexpr std::array<int64_t, 5> small_sizes{1, 2, 3, 4, 6};
const std::array<std::string, 4> letters{"a", "b", "c", "d"};

template <class Visit>
void for_each_root(size_t most_dims, const Visit& visit) {
  for (size_t count = 1; count <= most_dims; ++count) {
    size_t choices = 1;
    for (size_t i = 0; i < count; ++i) choices *= small_sizes.size();
    for (size_t choice = 0; choice < choices; ++choice) {
      std::vector<std::pair<std::string, int64_t>> dims;
      int64_t world = 1;
      size_t rest = choice;
      for (size_t i = 0; i < count; ++i) {
        dims.emplace_back(letters[i], small_sizes[rest % small_sizes.size()]);
        world *= dims.back().second;
        rest /= small_sizes.size();
      }
      // Every second root has a rank map: 10, 9, ... downwards from 2 * world, so that nothing sorted is right by chance.
      std::vector<int64_t> ranks;
      for (int64_t i = 0; choice % 2 == 1 && i < world; ++i) ranks.push_back(2 * world - i);
      MeshTable table;
      REQUIRE(add_root(table, "root", world, std::move(ranks), dims).ok());
      visit(table);
    }
  }
}

std::vector<std::string> names_in(size_t mask, size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    if ((mask >> i & 1) != 0) names.push_back(letters[i]);
  }
  return names;
}

// The communicators of the layout hold every rank of the universe exactly once, each in ascending index order of the layout.
bool partitions(const Universe& universe, const Layout& layout) {
  std::vector<char> seen(static_cast<size_t>(universe.world), 0);
  for (const auto& list : group_ranks(universe, layout)) {
    if (static_cast<int64_t>(list.size()) != size(layout)) return false;
    for (const int64_t rank : list) {
      const auto position = universe.ranks.empty() ? rank : 2 * universe.world - rank;
      if (position < 0 || position >= universe.world || seen[static_cast<size_t>(position)]++ != 0) return false;
    }
  }
  return std::count(seen.begin(), seen.end(), 1) == universe.world;
}

// position_of and coordinates_at are inverse to each other and reach every position once.
bool coordinates_agree(const Mesh& mesh) {
  std::vector<char> seen(static_cast<size_t>(mesh.universe->world), 0);
  const std::vector<int64_t> shape = mesh_shape(mesh);
  for (int64_t copy = 0; copy < mesh_copies(mesh); ++copy) {
    for (int64_t index = 0; index < mesh_size(mesh); ++index) {
      const int64_t position = position_of(mesh, copy, index);
      if (position < 0 || position >= mesh.universe->world || seen[static_cast<size_t>(position)]++ != 0) return false;
      const Coordinates at = coordinates_at(mesh, position);
      int64_t again = 0;
      for (size_t i = 0; i < shape.size(); ++i) again = again * shape[i] + at.along[i];
      if (at.copy != copy || again != index) return false;
    }
  }
  return std::count(seen.begin(), seen.end(), 1) == mesh.universe->world;
}

}  // namespace

TEST_CASE("slices, flattens and transposes of every root") {
  for_each_root(4, [](const MeshTable& root) {
    const size_t count = root.meshes[0].dims.size();
    CAPTURE(to_text(root.meshes[0]));
    MeshTable table = root;
    for (size_t mask = 1; mask < size_t{1} << count; ++mask) {
      const std::vector<std::string> names = names_in(mask, count);
      const std::string number = std::to_string(mask);
      REQUIRE(add_slice(table, "slice" + number, "root", names).ok());
      REQUIRE(add_flatten(table, "flatten" + number, "root", names, "flat" + number).ok());
      REQUIRE(add_transpose(table, "turned" + number, "root", {names.rbegin(), names.rend()}).ok());
      std::vector<size_t> dims;
      for (const std::string& name : names) dims.push_back(*find_dim(table.meshes[0], name));
      // The flatten is found from any view, by layout.
      const Mesh& slice = table.meshes[table.meshes.size() - 3];
      std::vector<size_t> all(slice.dims.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = all.size() - 1 - i;
      const Flatten* found = find_flatten(table, slice, all);
      REQUIRE(found != nullptr);
      CHECK(found->layout == group_layout(table.meshes[0], dims));
      // A flatten of a transposed mesh's dims has its ranks in their new order.
      MeshTable trial = table;
      REQUIRE(add_flatten(trial, "", "turned" + number, {names.rbegin(), names.rend()}, "turned_flat").ok());
      CHECK(materialise(trial.meshes.back()) == materialise(table.meshes[*find_mesh(table, "turned" + number)]));
    }
    bool agree = true;
    for (const Mesh& mesh : table.meshes) {
      // A mesh's own ranks, by the definition in mesh.h.
      std::vector<int64_t> ranks;
      for (int64_t i = 0; i < mesh_size(mesh); ++i) ranks.push_back(rank_at(*mesh.universe, position_of(mesh, 0, i)));
      agree = agree && ranks == materialise(mesh) && ranks[0] == rank_at(*mesh.universe, 0);
      agree = agree && (mesh.universe->world > 72 || coordinates_agree(mesh));
    }
    CHECK(agree);
    bool partition = true;
    for (const Group& group : group_table(table)) partition = partition && partitions(*group.universe, group.layout);
    CHECK(partition);
  });
}

TEST_CASE("an unflatten, flattened again, is the original and shares its communicators") {
  for_each_root(4, [](const MeshTable& root) {
    CAPTURE(to_text(root.meshes[0]));
    for (size_t at = 0; at < root.meshes[0].dims.size(); ++at) {
      const MeshDim& dim = root.meshes[0].dims[at];
      for (int64_t outer = 1; outer <= dim.size; ++outer) {
        if (dim.size % outer != 0) continue;
        MeshTable table = root;
        REQUIRE(add_unflatten(table, "split", "root", dim.name, {outer, dim.size / outer}, {"o", "i"}).ok());
        REQUIRE(add_flatten(table, "again", "split", {"o", "i"}, "oi").ok());
        CHECK(table.meshes[2].dims[0].layout == dim.layout);
        // In place of the dim: the mesh has the ranks of the root, in the same order.
        CHECK(materialise(table.meshes[1]) == materialise(root.meshes[0]));
        const auto groups = group_table(table);
        CHECK(&group_of(groups, table.meshes[2], table.meshes[2].dims[0]) == &group_of(groups, table.meshes[0], dim));
      }
    }
  });
}

TEST_CASE("slices of separate dims concatenate to the slice of both, in either order") {
  for_each_root(3, [](const MeshTable& root) {
    const size_t count = root.meshes[0].dims.size();
    CAPTURE(to_text(root.meshes[0]));
    for (size_t left = 1; left < size_t{1} << count; ++left) {
      for (size_t right = 1; right < size_t{1} << count; ++right) {
        MeshTable table = root;
        REQUIRE(add_slice(table, "l", "root", names_in(left, count)).ok());
        REQUIRE(add_slice(table, "r", "root", names_in(right, count)).ok());
        const Status status = add_concatenate(table, "both", {"l", "r"});
        CHECK(status.ok() == ((left & right) == 0));
        if (!status.ok()) continue;
        std::vector<std::string> names = names_in(left, count);
        for (const std::string& name : names_in(right, count)) names.push_back(name);
        REQUIRE(add_transpose(table, "expected", "root", names).ok());
        CHECK(same_devices(table.meshes[3], table.meshes[4]));
        CHECK(coordinates_agree(table.meshes[3]));
      }
    }
  });
}

}  // namespace meshplan
