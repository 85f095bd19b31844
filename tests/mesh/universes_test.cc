// Several universes in one table: each with its own views, flattens and groups.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/text.h"
#include "mesh/groups.h"
#include "mesh/mesh_table.h"

namespace meshplan {
namespace {

std::string error_text(const Status& status) { return status ? "" : status.error().message; }

// train dp 2 x tp 4 on ranks 0-7 and serve ep 4 x tp 2 on ranks 8-15, declared in turns.
MeshTable train_and_serve() {
  MeshTable table;
  REQUIRE(add_root(table, "train", 8, {}, {{"dp", 2}, {"tp", 4}}).ok());
  REQUIRE(add_root(table, "serve", 8, {8, 9, 10, 11, 12, 13, 14, 15}, {{"ep", 4}, {"tp", 2}}).ok());
  REQUIRE(add_flatten(table, "train_all", "train", {"dp", "tp"}, "all").ok());
  REQUIRE(add_flatten(table, "serve_all", "serve", {"ep", "tp"}, "all").ok());
  REQUIRE(add_slice(table, "train_tp", "train", {"tp"}).ok());
  return table;
}

}  // namespace

TEST_CASE("meshes and flattens stand universe by universe") {
  const MeshTable table = train_and_serve();
  std::vector<std::string> names;
  for (const Mesh& mesh : table.meshes) names.push_back(mesh.name);
  CHECK(join(names, " ") == "train train_all train_tp serve serve_all");
  REQUIRE(table.flattens.size() == 2);
  CHECK(table.flattens[0].of == "train");
  CHECK(table.flattens[1].of == "serve");
  REQUIRE(universes_of(table).size() == 2);
  CHECK(has_several_universes(table));
  CHECK(!has_several_universes(split_by_universe(table).back()));
  CHECK(!has_several_universes({}));
  CHECK(root_of(table, table.meshes[2]).name == "train");
  CHECK(root_of(table, table.meshes[4]).name == "serve");
  const auto parts = split_by_universe(table);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].meshes.size() == 3);
  CHECK(parts[1].meshes.size() == 2);
  CHECK(parts[1].flattens.size() == 1);
}

TEST_CASE("the same layout in two universes is two groups, and its flatten that of one") {
  MeshTable table = train_and_serve();
  const auto groups = group_table(table);
  const Group& in_train = group_of(groups, table.meshes[1], table.meshes[1].dims[0]);
  const Group& in_serve = group_of(groups, table.meshes[4], table.meshes[4].dims[0]);
  CHECK(in_train.layout == in_serve.layout);
  CHECK(&in_train != &in_serve);
  CHECK(group_ranks(*in_serve.universe, in_serve.layout) == std::vector<std::vector<int64_t>>{{8, 9, 10, 11, 12, 13, 14, 15}});
  const Flatten* of_serve = find_flatten(table, table.meshes[3], {0, 1});
  REQUIRE(of_serve != nullptr);
  CHECK(of_serve->of == "serve");
  // A flatten of one universe says nothing of the other.
  REQUIRE(add_root(table, "third", 8, {}, {{"a", 2}, {"b", 4}}).ok());
  CHECK(find_flatten(table, table.meshes.back(), {0, 1}) == nullptr);
  CHECK(!find_native_flatten(table, table.meshes.back(), {0, 1}));
}

TEST_CASE("the ranks of all universes count once each") {
  MeshTable table = train_and_serve();
  CHECK(rank_count(table) == 16);
  CHECK(joined_universe(table) == Universe{16, {}});
  REQUIRE(add_root(table, "other", 3, {20, 3, 17}, {}).ok());
  CHECK(rank_count(table) == 18);
  const Universe all = joined_universe(table);
  CHECK(all.world == 18);
  CHECK(all.ranks == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 20});
  // A world that nobody lists is not listed here either.
  REQUIRE(add_root(table, "huge", int64_t{1} << 50, {}, {}).ok());
  CHECK(rank_count(table) == int64_t{1} << 50);
}

TEST_CASE("views stay within one universe, and mesh names are unique in the file") {
  MeshTable table = train_and_serve();
  CHECK(error_text(add_concatenate(table, "both", {"train_tp", "serve"})) ==
        "cannot concatenate [\"train_tp\", \"serve\"]: \"train_tp\" is in the universe of \"train\" and \"serve\" in that of "
        "\"serve\"; make a mesh of both by another root, over all their ranks");
  CHECK(error_text(add_flatten(table, "", "serve", {"ep", "tp"}, "train")) ==
        "a mesh called \"train\" exists already; give this one another name");
  CHECK(error_text(add_root(table, "serve", 4, {}, {})) == "a mesh called \"serve\" exists already; give this one another name");
  CHECK(error_text(add_root(table, "again", 4, {1, 2, 3, 1}, {})) == "mesh \"again\" lists rank 1 twice");
}

TEST_CASE("a flatten takes dims in any order, and its ranks follow it") {
  MeshTable table = train_and_serve();
  REQUIRE(add_flatten(table, "turned", "serve", {"tp", "ep"}, "tp_ep").ok());
  const Mesh& turned = table.meshes.back();
  CHECK(to_text(turned.dims[0].layout) == "(2,4):(1,2)");
  CHECK(materialise(turned) == std::vector<int64_t>{8, 10, 12, 14, 9, 11, 13, 15});
  REQUIRE(add_slice(table, "s_tp", "serve", {"tp"}).ok());
  REQUIRE(add_slice(table, "s_ep", "serve", {"ep"}).ok());
  REQUIRE(add_concatenate(table, "cat", {"s_tp", "s_ep"}).ok());
  REQUIRE(add_flatten(table, "cat_flat", "cat", {"tp", "ep"}, "flat").ok());
  CHECK(materialise(table.meshes.back()) ==
        materialise(*std::find_if(table.meshes.begin(), table.meshes.end(), [](const Mesh& m) { return m.name == "turned"; })));
  CHECK(find_flatten(table, table.meshes[*find_mesh(table, "cat")], {0, 1}) != nullptr);
}

TEST_CASE("a rank map prints in runs") {
  CHECK(rank_runs({8, {}}) == "0-7");
  CHECK(rank_runs({1, {}}) == "0");
  CHECK(rank_runs({8, {8, 9, 10, 11, 3, 1, 2, 0}}) == "8-11 3 1-2 0");
  CHECK(rank_runs({10, {18, 16, 14, 12, 10, 8, 6, 4, 2, 0}}) == "18 16 14 12 10 8 6 4 ...");
}

}  // namespace meshplan
