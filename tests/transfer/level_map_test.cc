// The shapes of groups, and over how many units they spread, against counting every group's members unit by unit.
#include "transfer/level_map.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "mesh/mesh_table.h"
#include "tensor/box.h"

using namespace meshplan;

namespace {

// Every group over these whole mesh dims, rank by rank.
struct Counted {
  std::set<GroupShape> shapes;
  LevelMap::Spread spread;
};
Counted counted(const Mesh& mesh, const Topology& topology, const std::vector<size_t>& dims) {
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  std::map<std::vector<int64_t>, std::vector<int64_t>> groups;  // by the coordinates that stay: ranks
  for (int64_t copy = 0; copy < mesh_copies(mesh); ++copy) {
    for (int64_t i = 0; i < mesh_size(mesh); ++i) {
      std::vector<int64_t> stays = coordinates_of(i, sizes);
      for (const size_t d : dims) stays[d] = 0;
      stays.push_back(copy);
      groups[stays].push_back(rank_at(*mesh.universe, position_of(mesh, copy, i)));
    }
  }
  Counted counts;
  for (const auto& [stays, ranks] : groups) {
    std::map<int64_t, int64_t> units;  // how many members each of the innermost level has
    for (const int64_t rank : ranks) ++units[rank / topology.levels.front().ranks];
    counts.spread.units = std::max(counts.spread.units, static_cast<int64_t>(units.size()));
    for (const auto& [unit, members] : units) counts.spread.inside = std::max(counts.spread.inside, members);
    GroupShape shape;
    std::vector<int64_t> inner(ranks.size(), 1);
    for (size_t l = 0; l < topology.levels.size(); ++l) {
      int64_t reach = 0;
      std::vector<int64_t> here(ranks.size(), 0);
      for (size_t a = 0; a < ranks.size(); ++a) {
        const int64_t unit = topology.levels[l].ranks;
        const bool all = l + 1 == topology.levels.size();
        for (const int64_t other : ranks) here[a] += all || ranks[a] / unit == other / unit;
        reach = std::max(reach, here[a] - inner[a]);
        shape.uniform = shape.uniform && here[a] == here[0];
      }
      shape.members.push_back(here[0]);
      shape.reach.push_back(reach);
      inner = here;
    }
    if (shape.uniform) shape.reach.clear();
    counts.shapes.insert(std::move(shape));
  }
  return counts;
}

void check(const Mesh& mesh, const Topology& topology) {
  const LevelMap levels(mesh, topology);
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  for (size_t pick = 1; pick < size_t{1} << sizes.size(); ++pick) {
    std::vector<SubAxis> sub_axes;
    std::vector<size_t> dims;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if ((pick >> d & 1) == 0) continue;
      dims.push_back(d);
      sub_axes.push_back({static_cast<int32_t>(d), 1, sizes[d]});
    }
    CAPTURE(pick);
    const std::vector<GroupShape>& shapes = levels.shapes(sub_axes);
    const Counted all = counted(mesh, topology, dims);
    CHECK(std::set<GroupShape>(shapes.begin(), shapes.end()) == all.shapes);
    CHECK(levels.spread(sub_axes).units == all.spread.units);
    CHECK(levels.spread(sub_axes).inside == all.spread.inside);
  }
}

Topology units_of(const std::vector<int64_t>& ranks) {
  Topology topology;
  for (const int64_t n : ranks) topology.levels.push_back({"level", n, 100'000, 1'000, 0, 100});
  return topology;
}

}  // namespace

TEST_CASE("shapes of groups are those that counting finds, where units do not cut the mesh evenly") {
  const std::vector<std::vector<int64_t>> units{{12, 1'000}, {5, 1'000}, {3, 9, 1'000}, {4, 12, 36, 1'000}};
  for (const auto& ranks : units) {
    CAPTURE(ranks.size());
    check(*make_mesh("mesh", {{"a", 4}, {"b", 2}, {"c", 8}}), units_of(ranks));
    check(*make_mesh("mesh", {{"a", 5}, {"b", 7}, {"c", 3}}), units_of(ranks));
    MeshTable views;
    REQUIRE(add_root(views, "mesh", 64, {}, {{"a", 4}, {"b", 2}, {"c", 8}}).ok());
    REQUIRE(add_transpose(views, "turned", "mesh", {"c", "a", "b"}).ok());
    REQUIRE(add_slice(views, "part", "mesh", {"a", "c"}).ok());
    for (const Mesh& mesh : views.meshes) check(mesh, units_of(ranks));
    std::vector<int64_t> permuted(64);
    for (size_t i = 0; i < permuted.size(); ++i) permuted[i] = static_cast<int64_t>(i * 27 % 64);
    MeshTable mixed;
    REQUIRE(add_root(mixed, "mesh", 64, permuted, {{"a", 4}, {"b", 2}, {"c", 8}}).ok());
    check(mixed.meshes[0], units_of(ranks));
  }
}

TEST_CASE("units whose ranks stand in one order, and units that do not") {
  Topology topology;
  topology.levels = {{"in", 2, 100'000, 1'000, 0, 100}, {"out", 1'048'576, 10'000, 5'000, 0, 100}};
  const auto in_one_order = [&](const std::vector<int64_t>& ranks, const std::vector<int64_t>& sizes) {
    std::vector<std::pair<std::string, int64_t>> dims;
    for (const int64_t size : sizes) dims.emplace_back(std::string(1, static_cast<char>('a' + std::ssize(dims))), size);
    const Mesh mesh = *make_mesh("mesh", dims, ranks);
    const LevelMap levels(mesh, topology);
    REQUIRE(levels.regular());
    return levels.units_in_one_order();
  };
  CHECK(in_one_order({}, {2, 2}));
  CHECK(in_one_order({0, 2, 1, 3}, {2, 2}));
  CHECK(in_one_order({1, 0, 3, 2}, {2, 2}));  // the other way around in both
  CHECK_FALSE(in_one_order({1, 0, 2, 3}, {2, 2}));
  CHECK_FALSE(in_one_order({1, 2, 0, 3}, {4}));
  CHECK(in_one_order({4, 5, 0, 1, 2, 3}, {3, 2}));  // hosts in any order
}

TEST_CASE("ranks of a group meet on the levels on which units have more of it than those inside") {
  CHECK(levels_met({{true, {2, 2, 8}, {}}}) == 0b101);
  CHECK(levels_met({{true, {2, 8, 8}, {}}}) == 0b011);
  CHECK(levels_met({{true, {4, 4, 4}, {}}}) == 0b001);
  CHECK(levels_met({{true, {1, 4, 4}, {}}}) == 0b010);
  CHECK(levels_met({{true, {1, 1, 1}, {}}}) == 0);
  // Of groups that sit differently any.
  CHECK(levels_met({{true, {4, 4, 4}, {}}, {false, {2, 3, 3}, {1, 2, 0}}}) == 0b011);
}
