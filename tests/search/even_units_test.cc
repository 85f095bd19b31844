// Units that cut a mesh evenly, in place of those of a topology that do not.
#include "search/even_units.h"

#include <doctest/doctest.h>

#include "mesh/mesh_table.h"

namespace meshplan {
namespace {

Topology levels_of(const std::vector<int64_t>& units) {
  Topology topology;
  for (const int64_t ranks : units) topology.levels.push_back({"level", ranks, 100'000, 0, 0});
  topology.levels.push_back({"all", 1'048'576, 10'000, 0, 0});
  return topology;
}

using Dims = std::vector<std::pair<std::string, int64_t>>;

// Sizes of units by level, one list for each choice.
std::vector<std::vector<int64_t>> sizes(const Dims& dims, int64_t first, const std::vector<int64_t>& units) {
  int64_t world = 1;
  for (const auto& [name, size] : dims) world *= size;
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < world; ++i) ranks.push_back(first + i);
  const auto mesh = make_mesh("mesh", dims, ranks);
  REQUIRE(mesh.ok());
  const Topology topology = levels_of(units);
  const LevelMap levels(*mesh, topology);
  std::vector<std::vector<int64_t>> all;
  for (const auto& even : even_units_of(levels)) {
    REQUIRE(even->levels().regular());
    auto& list = all.emplace_back();
    for (size_t l = 0; l < units.size(); ++l) list.push_back(even->levels().topology().levels[l].ranks);
  }
  return all;
}

using Sizes = std::vector<std::vector<int64_t>>;

}  // namespace

TEST_CASE("the largest units that cut the mesh evenly and are no larger than what units have") {
  // Racks have 8, then 72 ranks each.
  CHECK(sizes({{"dp", 64}, {"tp", 8}}, 64, {72}) == Sizes{{64}, {32}, {8}});
  // 64, 72, 72 and 48.
  CHECK(sizes({{"dp", 16}, {"tp", 16}}, 512, {72}) == Sizes{{64}, {32}});
  // 56, 72 four times, 40.
  CHECK(sizes({{"dp", 48}, {"tp", 8}}, 1024, {72}) == Sizes{{64}, {32}});
  // Hosts have 8, 8, 8 and 6.
  CHECK(sizes({{"dp", 5}, {"tp", 6}}, 0, {8}) == Sizes{{6}, {3}});
}

TEST_CASE("a mesh in one unit has all of its ranks in it, wherever it begins, also where inner ones cut it unevenly") {
  CHECK(sizes({{"dp", 8}, {"tp", 8}}, 512, {72}).empty());
  CHECK(sizes({{"dp", 4}}, 2, {8}).empty());
  // Hosts have 4, 12 five times; the rack all.
  for (const auto& list : sizes({{"dp", 8}, {"tp", 8}}, 512, {12, 72})) CHECK(list[1] == 64);
  CHECK_FALSE(sizes({{"dp", 8}, {"tp", 8}}, 512, {12, 72}).empty());
}

TEST_CASE("units of outer levels are made of inner ones") {
  // Hosts of 8 that begin in the middle of one, racks of 24.
  for (const auto& list : sizes({{"dp", 16}, {"tp", 2}}, 4, {8, 24})) {
    REQUIRE(list.size() == 2);
    CHECK(list[1] % list[0] == 0);
    CHECK(list[0] <= 8);
  }
  CHECK(sizes({{"dp", 16}, {"tp", 2}}, 4, {8, 24}).size() >= 2);
}

TEST_CASE("no others where units cut the mesh evenly") {
  CHECK(sizes({{"dp", 16}, {"tp", 8}}, 64, {64}).empty());
  CHECK(sizes({{"dp", 3}, {"tp", 24}}, 72, {72}).empty());
}

}  // namespace meshplan
