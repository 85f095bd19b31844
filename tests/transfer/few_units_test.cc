// Units of a level by the ranks in them, each against all ranks one by one.
#include "transfer/few_units.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "../cost/small_mesh.h"
#include "transfer/level_map.h"

using namespace meshplan;

namespace {

// The indices of all ranks of the first copy whose ids are in the unit of this one, by their id.
UnitMembers members_of(const Mesh& mesh, int64_t unit_ranks, int64_t index) {
  const auto id = [&](int64_t i) { return rank_at(*mesh.universe, position_of(mesh, 0, i)); };
  UnitMembers members;
  for (int64_t i = 0; i < mesh_size(mesh); ++i) {
    if (floor_div(id(i), unit_ranks) == floor_div(id(index), unit_ranks)) members.push_back(i);
  }
  std::sort(members.begin(), members.end(), [&](int64_t a, int64_t b) { return id(a) < id(b); });
  return members;
}

}  // namespace

TEST_CASE("the unit of a rank, and a few units, are those that ids give") {
  const std::vector<int64_t> scattered{9, 4, 5, 12, 1, 0, 30, 7, 22, 8, 3, 2};
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{12}, {3, 4}, {2, 6}, {2, 2, 3}}) {
    for (const bool permuted : {false, true}) {
      const Mesh mesh = permuted ? test::mesh_of(sizes, scattered) : test::mesh_of(sizes);
      for (const int64_t ranks : {1, 2, 4, 5, 8, 12, 40}) {
        const Topology topology = test::two_levels(ranks, 500);
        const LevelMap levels(mesh, topology);
        CAPTURE(ranks);
        CAPTURE(permuted);
        for (int64_t index = 0; index < mesh_size(mesh); ++index) {
          const UnitMembers expected = members_of(mesh, ranks, index);
          REQUIRE(levels.unit_of(0, index, 12) == expected);
          REQUIRE(levels.unit_of(0, index, 3) == (expected.size() > 3 ? UnitMembers() : expected));
        }
        size_t fewest = 12;
        for (int64_t index = 0; index < mesh_size(mesh); ++index) fewest = std::min(fewest, members_of(mesh, ranks, index).size());
        const std::vector<UnitMembers>& few = levels.few_units(0, 12);
        REQUIRE(!few.empty());
        REQUIRE(few.size() <= 3);
        REQUIRE(few.front().size() == fewest);
        for (const UnitMembers& unit : few) REQUIRE(unit == members_of(mesh, ranks, unit.front()));
      }
    }
  }
}
