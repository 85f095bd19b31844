#include "cost/copy_lines.h"

#include <doctest/doctest.h>

#include <string>

#include "mesh/mesh_table.h"

namespace meshplan {
namespace {

// Of a mesh on ranks first, first + 1, ..; hosts of 8.
std::vector<CopyLines> lines_of(const std::vector<std::pair<std::string, int64_t>>& dims, const std::string& text, size_t tensor_dims,
                                int64_t first = 0) {
  MeshTable table;
  std::vector<int64_t> ranks;
  int64_t world = 1;
  for (const auto& [name, size] : dims) world *= size;
  for (int64_t i = 0; i < world; ++i) ranks.push_back(first + i);
  REQUIRE(add_root(table, "m", world, ranks, dims).ok());
  const std::vector<int64_t> levels{8, INT64_MAX};
  const LevelUnits units(levels);
  const auto state = parse_state(text, mesh_shape(table.meshes[0]), tensor_dims);
  REQUIRE(state.ok());
  return copy_lines(table.meshes[0], *state, units);
}

}  // namespace

TEST_CASE("a dim that cuts the tensor wholly has no lines: the header's example") {
  CHECK(lines_of({{"dp", 4}, {"tp", 4}}, "RS(0)", 2) == std::vector<CopyLines>{{4, 2}});
  CHECK(lines_of({{"dp", 4}, {"tp", 4}}, "S(0)S(1)", 2).empty());
}

TEST_CASE("every dim that holds copies has its own, the last one first") {
  CHECK(lines_of({{"dp", 4}, {"tp", 4}}, "RR", 2) == std::vector<CopyLines>{{4, 1}, {4, 2}});
}

TEST_CASE("the least counts where lines meet unlike numbers of hosts") {
  // Ranks 6 .. 13: those of tp 0 are 6 7 8 9, in two hosts, those of tp 1 in one.
  CHECK(lines_of({{"tp", 2}, {"dp", 4}}, "S(0)R", 2, 6) == std::vector<CopyLines>{{4, 1}});
  CHECK(lines_of({{"dp", 8}}, "R", 1, 6) == std::vector<CopyLines>{{8, 2}});
}

TEST_CASE("a dim that is cut in part still holds copies") {
  CHECK(lines_of({{"dp", 16}}, "{S(0):2,R:8}", 1) == std::vector<CopyLines>{{16, 2}});
}

}  // namespace meshplan
