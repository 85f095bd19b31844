#include "transfer/rank_table.h"

#include <doctest/doctest.h>

using namespace meshplan;

TEST_CASE("replay ranks number the global ids in ascending order") {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "root", 4, {9, 2, 7, 4}, {}).ok());
  const RankTable table = make_rank_table(meshes);
  CHECK(table.global_ids == std::vector<int64_t>{2, 4, 7, 9});
  CHECK(table.of_positions(*meshes.meshes[0].universe) == std::vector<int32_t>{3, 0, 2, 1});
}

TEST_CASE("the ranks of several universes are numbered together, each once") {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "a", 4, {9, 2, 7, 4}, {}).ok());
  REQUIRE(add_root(meshes, "b", 2, {4, 5}, {}).ok());
  REQUIRE(add_root(meshes, "c", 3, {}, {}).ok());
  const RankTable table = make_rank_table(meshes);
  CHECK(table.global_ids == std::vector<int64_t>{0, 1, 2, 4, 5, 7, 9});
  CHECK(table.of_positions(*meshes.meshes[0].universe) == std::vector<int32_t>{6, 2, 5, 3});
  CHECK(table.of_positions(*meshes.meshes[1].universe) == std::vector<int32_t>{3, 4});
  CHECK(table.of_positions(*meshes.meshes[2].universe) == std::vector<int32_t>{0, 1, 2});
  CHECK(rank_table_within(meshes, 7).ok());
  const auto few = rank_table_within(meshes, 6);
  REQUIRE(!few.ok());
  CHECK(few.error().message == "the plan needs 7 ranks and there are 6; start as many processes");
}
