// What each operation refuses, and in which words.
#include <doctest/doctest.h>

#include "mesh/mesh_table.h"

namespace meshplan {
namespace {

MeshTable world(std::vector<int64_t> ranks = {}) {
  MeshTable table;
  REQUIRE(add_root(table, "root", 24, std::move(ranks), {{"pp", 2}, {"dp", 3}, {"tp", 4}}).ok());
  return table;
}

std::string message(const Status& status) { return status.ok() ? "no error" : status.error().message; }

}  // namespace

TEST_CASE("roots") {
  MeshTable table;
  CHECK(message(add_root(table, "root", 0, {}, {})) == "mesh \"root\" has a world of 0 ranks; expected 1 or more");
  CHECK(message(add_root(table, "", 4, {}, {})) == "a mesh has no name");
  CHECK(message(add_root(table, "root", 4, {0, 1, 2}, {})) == "mesh \"root\" lists 3 ranks for a world of 4");
  CHECK(message(add_root(table, "root", 4, {0, 1, 1, 2}, {})) == "mesh \"root\" lists rank 1 twice");
  CHECK(message(add_root(table, "root", 4, {0, 1, -1, 2}, {})) == "mesh \"root\" lists rank -1; ranks are 0 or more");
  CHECK(message(add_root(table, "root", 2, {0, INT64_MAX}, {})) ==
        "mesh \"root\" lists rank 9223372036854775807; ranks are 9223372036854775806 at most");
  // PyTorch rounds such worlds up, to ranks that do not exist.
  CHECK(message(add_root(table, "root", 10, {}, {{"a", 4}, {"b", 3}})) ==
        "the dims of mesh \"root\" multiply to 12; its world has 10 ranks");
  CHECK(message(add_root(table, "root", 10, {}, {{"a", 4}, {"b", 2}})) ==
        "the dims of mesh \"root\" multiply to 8; its world has 10 ranks");
  CHECK(message(add_root(table, "root", 4, {}, {{"a", 2}, {"a", 2}})) == "mesh \"root\" has two dims \"a\"; give each its own name");
  CHECK(message(add_root(table, "root", 4, {}, {{"a", 0}})) == "dim \"a\" of mesh \"root\" has size 0; sizes are 1 or more");
  CHECK(message(add_root(table, "root", 4, {}, {{"a", INT64_MAX}, {"b", 2}})) ==
        "the sizes of the dims of mesh \"root\" multiply to more than 64 bits");
  CHECK(table.meshes.empty());
  REQUIRE(add_root(table, "root", INT64_MAX, {}, {}).ok());
  CHECK(to_text(table.meshes[0].dims[0].layout) == "9223372036854775807:1");
  REQUIRE(add_root(table, "other", 4, {}, {}).ok());
  CHECK(table.meshes[0].universe != table.meshes[1].universe);
}

TEST_CASE("the identity rank map is no rank map, any other is held once") {
  std::vector<int64_t> identity(24);
  for (int64_t i = 0; i < 24; ++i) identity[static_cast<size_t>(i)] = i;
  CHECK(world(identity).meshes[0].universe->ranks.empty());
  std::swap(identity[0], identity[1]);
  MeshTable table = world(identity);
  REQUIRE(add_slice(table, "s", "root", {"tp"}).ok());
  CHECK(table.meshes[0].universe == table.meshes[1].universe);
  CHECK(universes_of(table).size() == 1);
  CHECK(materialise(table.meshes[1]) == std::vector<int64_t>{1, 0, 2, 3});
}

TEST_CASE("slices") {
  MeshTable table = world();
  CHECK(message(add_slice(table, "s", "rot", {"tp"})) == "there is no mesh \"rot\"; did you mean \"root\"?");
  CHECK(message(add_slice(table, "s", "dense", {"tp"})) == "there is no mesh \"dense\"; the meshes so far are [\"root\"]");
  CHECK(message(add_slice(table, "s", "root", {"tq"})) == "mesh \"root\" has no dim \"tq\"; did you mean \"tp\"?");
  CHECK(message(add_slice(table, "s", "root", {"experts"})) ==
        "mesh \"root\" has no dim \"experts\"; its dims are [\"pp\", \"dp\", \"tp\"]");
  CHECK(message(add_slice(table, "s", "root", {"tp", "tp"})) == "dim \"tp\" is named twice");
  CHECK(message(add_slice(table, "s", "root", {})) == "no dim of mesh \"root\" is named");
  CHECK(message(add_slice(table, "root", "root", {"tp"})) == "a mesh called \"root\" exists already; give this one another name");
  CHECK(
      message(add_slice(table, "s", "root", {"tp", "pp"})) ==
      "cannot slice [\"tp\", \"pp\"] of mesh \"root\": the strides must descend and are tp 4:1, pp 2:12; list the dims outermost first, or "
      "reorder them with \"transpose\": [\"tp\", \"pp\"]");
  CHECK(table.meshes.size() == 1);
  CHECK(add_transpose(table, "s", "root", {"tp", "pp"}).ok());
  // All of its dims in its own order is a slice of any mesh; some of them must descend.
  CHECK(add_slice(table, "same", "s", {"tp", "pp"}).ok());
  CHECK(materialise(table.meshes.back()) == materialise(table.meshes[1]));
  CHECK(add_transpose(table, "turned", "root", {"tp", "dp", "pp"}).ok());
  CHECK_FALSE(add_slice(table, "some", "turned", {"tp", "dp"}).ok());
  CHECK_FALSE(add_slice(table, "other", "turned", {"dp", "tp", "pp"}).ok());
}

TEST_CASE("a root is sliced by the dims that are flattened in its universe, too, beside those they have no rank in common with") {
  MeshTable table = world();
  REQUIRE(add_slice(table, "view", "root", {"pp", "dp"}).ok());
  REQUIRE(add_flatten(table, "both", "view", {"pp", "dp"}, "pp_dp", "{\"p\":1}").ok());
  REQUIRE(add_slice(table, "s", "root", {"pp_dp"}).ok());
  CHECK(table.meshes.back().dims == table.meshes[2].dims);
  REQUIRE(add_slice(table, "t", "root", {"pp_dp", "tp"}).ok());
  CHECK(to_text(table.meshes.back().dims[0].layout) == "6:4");
  CHECK(materialise(table.meshes.back()) == materialise(table.meshes[0]));
  CHECK(message(add_slice(table, "u", "root", {"tp", "pp_dp"})).find("the strides must descend and are tp 4:1, pp_dp 6:4") !=
        std::string::npos);
  CHECK(message(add_slice(table, "u", "root", {"pp_dp", "dp"})) ==
        "cannot slice dims \"pp_dp\" 6:4 and \"dp\" 3:4 of mesh \"root\": they share ranks");
  CHECK(message(add_slice(table, "u", "root", {"pp_do"})) == "mesh \"root\" has no dim \"pp_do\"; did you mean \"pp_dp\"?");
  // Only of the root: a view has no dims but its own.
  CHECK(message(add_slice(table, "u", "view", {"pp_dp"})).find("mesh \"view\" has no dim \"pp_dp\"") == 0);
  // Those of another universe are not its.
  REQUIRE(add_root(table, "other", 4, {}, {{"x", 2}, {"y", 2}}).ok());
  CHECK_FALSE(add_slice(table, "u", "other", {"pp_dp"}).ok());
}

TEST_CASE("size-1 dims stand anywhere in an order") {
  MeshTable table;
  REQUIRE(add_root(table, "root", 8, {}, {{"one", 1}, {"a", 2}, {"b", 4}, {"uno", 1}}).ok());
  CHECK(add_slice(table, "s", "root", {"uno", "a", "one", "b"}).ok());
  CHECK(add_flatten(table, "", "root", {"a", "uno", "b", "one"}).ok());
  CHECK_FALSE(add_slice(table, "t", "root", {"b", "one", "a"}).ok());
  // Flattened with or without them, it is the same group.
  CHECK(find_flatten(table, table.meshes[0], {1, 2}) != nullptr);
  CHECK(find_flatten(table, table.meshes[0], {0, 1, 2}) == find_flatten(table, table.meshes[0], {1, 2}));
}

TEST_CASE("flattens") {
  MeshTable table = world();
  CHECK(add_flatten(table, "", "root", {"pp", "tp"}).ok());
  CHECK(to_text(table.meshes[1].dims[0].layout) == "(2,4):(12,1)");
  CHECK(table.meshes[1].name == "pp_tp");
  CHECK(table.meshes[1].dims[0].name == "pp_tp");
  // The same name for the same layout is a no-op, also from another view.
  CHECK(add_flatten(table, "", "root", {"pp", "tp"}).ok());
  CHECK(table.meshes.size() == 2);
  CHECK(table.flattens.size() == 1);
  CHECK(add_slice(table, "view", "root", {"pp", "tp"}).ok());
  CHECK(add_flatten(table, "", "view", {"pp", "tp"}).ok());
  CHECK(add_flatten(table, "second", "view", {"pp", "tp"}, "pp_tp").ok());
  CHECK(table.flattens.size() == 1);
  CHECK(table.meshes.size() == 4);
  CHECK(message(add_flatten(table, "", "root", {"pp", "dp"}, "pp_tp")) ==
        "the name \"pp_tp\" is taken by the flatten of [\"pp\", \"tp\"] of mesh \"root\" with layout (2,4):(12,1), not 6:4; give this one "
        "another name");
  CHECK(message(add_flatten(table, "", "root", {"pp", "dp"}, "tp")) ==
        "the name \"tp\" is taken by a dim of mesh \"root\"; give the flatten of [\"pp\", \"dp\"] another name");
  CHECK(message(add_flatten(table, "view", "root", {"pp", "dp"}, "x")) ==
        "a mesh called \"view\" exists already; give this one another name");
  CHECK(message(declare_flatten(table, "root", {"dp", "pp"})) ==
        "cannot flatten [\"dp\", \"pp\"] of mesh \"root\": the strides must descend and are dp 3:4, pp 2:12; list the dims outermost "
        "first, or "
        "reorder them with \"transpose\": [\"dp\", \"pp\"]");
  CHECK(table.flattens.size() == 1);
}

TEST_CASE("a mesh of one dim flattened into its own name declares nothing") {
  MeshTable table = world();
  REQUIRE(add_slice(table, "just_tp", "root", {"tp"}).ok());
  CHECK(add_flatten(table, "same", "just_tp", {"tp"}, "tp").ok());
  CHECK(table.flattens.empty());
  CHECK(same_devices(table.meshes[1], table.meshes[2]));
  CHECK(message(add_flatten(table, "other", "just_tp", {"tp"}, "dp")) ==
        "the name \"dp\" is taken by a dim of mesh \"root\"; give the flatten of [\"tp\"] another name");
}

TEST_CASE("a flatten of a concatenated mesh has the ranks of its dims in their order") {
  MeshTable table = world();
  REQUIRE(add_slice(table, "t", "root", {"tp"}).ok());
  REQUIRE(add_slice(table, "p", "root", {"pp"}).ok());
  REQUIRE(add_concatenate(table, "tp_pp", {"t", "p"}).ok());
  CHECK(materialise(table.meshes[3]) == std::vector<int64_t>{0, 12, 1, 13, 2, 14, 3, 15});
  REQUIRE(add_flatten(table, "tp_pp_flat", "tp_pp", {"tp", "pp"}, "tp_then_pp").ok());
  CHECK(materialise(table.meshes[4]) == materialise(table.meshes[3]));
  table.meshes.pop_back();
  REQUIRE(add_flatten(table, "", "tp_pp", {"pp", "tp"}).ok());
  CHECK(materialise(table.meshes[4]) == std::vector<int64_t>{0, 1, 2, 3, 12, 13, 14, 15});
}

TEST_CASE("a flatten in another order is PyTorch's only by its own, and the native rules' all the same") {
  MeshTable table = world();
  const std::vector<size_t> pp_tp{0, 2};
  REQUIRE(add_flatten(table, "", "root", {"tp", "pp"}).ok());
  CHECK(to_text(table.flattens[0].layout) == "(4,2):(1,12)");
  CHECK(find_flatten(table, table.meshes[0], pp_tp) == nullptr);
  REQUIRE(find_native_flatten(table, table.meshes[0], pp_tp));
  CHECK(find_native_flatten(table, table.meshes[0], pp_tp)->name == "tp_pp");
  // Where the mesh has the dims in that order, it is PyTorch's, too.
  REQUIRE(add_transpose(table, "turned", "root", {"tp", "dp", "pp"}).ok());
  CHECK(find_flatten(table, table.meshes.back(), pp_tp) == &table.flattens[0]);
  // No more ranks and no fewer, and no others of as many.
  CHECK_FALSE(find_native_flatten(table, table.meshes[0], {0, 1}));
  CHECK_FALSE(find_native_flatten(table, table.meshes[0], {1, 2}));
  CHECK_FALSE(find_native_flatten(table, table.meshes[0], {0, 1, 2}));
  // One in mesh order comes first, though declared later.
  REQUIRE(declare_flatten(table, "root", {"pp", "tp"}, "in_order").ok());
  CHECK(find_native_flatten(table, table.meshes[0], pp_tp)->name == "in_order");
  // One of another universe does not count.
  REQUIRE(add_root(table, "other", 24, {}, {{"pp", 2}, {"dp", 3}, {"tp", 4}}).ok());
  CHECK_FALSE(find_native_flatten(table, table.meshes.back(), pp_tp));
}

TEST_CASE("a root of one dim is the native rules' flatten of a view that covers it in any order") {
  MeshTable table;
  REQUIRE(add_root(table, "all", 8, {}, {{"all", 8}}).ok());
  REQUIRE(add_unflatten(table, "v", "all", "all", {2, 4}, {"a", "b"}).ok());
  REQUIRE(add_transpose(table, "t", "v", {"b", "a"}).ok());
  REQUIRE(find_native_flatten(table, table.meshes.back(), {0, 1}));
  CHECK(find_native_flatten(table, table.meshes.back(), {0, 1})->name == "all");
  CHECK(find_flatten(table, table.meshes.back(), {0, 1}) == nullptr);
}

TEST_CASE("declare_listed takes dims in any order, as add_flatten does") {
  MeshTable table = world();
  REQUIRE(declare_listed(table, "root", {"tp", "pp"}).ok());
  CHECK(table.meshes.size() == 1);
  REQUIRE(table.flattens.size() == 1);
  CHECK(table.flattens[0].dims == std::vector<std::string>{"tp", "pp"});
  CHECK(to_text(table.flattens[0].layout) == "(4,2):(1,12)");
  CHECK_FALSE(declare_listed(table, "root", {"tp", "dp"}, "tp_pp").ok());
  CHECK_FALSE(declare_listed(table, "root", {"tp", "tp"}).ok());
}

TEST_CASE("unflattens") {
  MeshTable table = world();
  CHECK(message(add_unflatten(table, "u", "root", "tp", {2, 3}, {"a", "b"})) ==
        "cannot unflatten dim \"tp\" of size 4: 2 * 3 is 6; the sizes must be positive and multiply to 4");
  CHECK(message(add_unflatten(table, "u", "root", "tp", {-2, -2}, {"a", "b"})) ==
        "cannot unflatten dim \"tp\" of size 4: -2 * -2 is 4; the sizes must be positive and multiply to 4");
  CHECK(message(add_unflatten(table, "u", "root", "tp", {INT64_MAX, 2}, {"a", "b"})) ==
        "cannot unflatten dim \"tp\" of size 4: 9223372036854775807 * 2 is more than 64 bits; the sizes must be positive and multiply "
        "to 4");
  CHECK(message(add_unflatten(table, "u", "root", "tp", {2, 2}, {"a"})) ==
        "the unflatten of \"tp\" gives 2 sizes and 1 names; it needs one name a size");
  CHECK(message(add_unflatten(table, "u", "root", "tp", {}, {})) ==
        "the unflatten of \"tp\" gives 0 sizes and 0 names; it needs one name a size");
  CHECK(message(add_unflatten(table, "u", "root", "tp", {2, 2}, {"a", "dp"})) ==
        "mesh \"u\" would have two dims \"dp\"; give each its own name");
  CHECK(message(add_unflatten(table, "u", "root", "tp", {2, 2}, {"a", ""})) == "dim 3 of mesh \"u\" has no name");
  CHECK(message(add_unflatten(table, "u", "root", "qq", {2, 2}, {"a", "b"})).find("has no dim \"qq\"") != std::string::npos);
  // A dim of two modes: factors may cut between and within them, not across one unevenly.
  REQUIRE(add_flatten(table, "", "root", {"pp", "tp"}).ok());
  REQUIRE(add_unflatten(table, "u", "pp_tp", "pp_tp", {4, 2}, {"a", "b"}).ok());
  CHECK(to_text(table.meshes[2].dims[0].layout) == "(2,2):(12,2)");
  CHECK(to_text(table.meshes[2].dims[1].layout) == "2:1");
  MeshTable uneven;
  REQUIRE(add_root(uneven, "root", 24, {}, {{"a", 4}, {"b", 2}, {"c", 3}}).ok());
  REQUIRE(add_flatten(uneven, "", "root", {"a", "c"}).ok());
  CHECK(message(add_unflatten(uneven, "u", "a_c", "a_c", {6, 2}, {"x", "y"})) ==
        "cannot split (4,3):(6,1): a factor of 2 cuts its mode 3:1 unevenly");
}

TEST_CASE("concatenations") {
  MeshTable table = world();
  REQUIRE(add_slice(table, "t", "root", {"tp"}).ok());
  REQUIRE(add_unflatten(table, "u", "root", "tp", {2, 2}, {"x", "y"}).ok());
  REQUIRE(add_slice(table, "y", "u", {"y"}).ok());
  CHECK(message(add_concatenate(table, "c", {"t", "y"})) == "cannot concatenate [\"t\", \"y\"]: dims \"tp\" 4:1 and \"y\" 2:1 share ranks");
  CHECK(message(add_concatenate(table, "c", {"t", "t"})) ==
        "cannot concatenate [\"t\", \"t\"]: dims \"tp\" 4:1 and \"tp\" 4:1 share ranks");
  CHECK(message(add_concatenate(table, "c", {})) == "mesh \"c\" concatenates no meshes; name one or more");
  CHECK(message(add_concatenate(table, "c", {"t", "nope"})).find("there is no mesh \"nope\"") != std::string::npos);
  MeshTable names;
  REQUIRE(add_root(names, "root", 4, {}, {{"a", 2}, {"b", 2}}).ok());
  REQUIRE(add_unflatten(names, "u", "root", "a", {2}, {"z"}).ok());
  REQUIRE(add_unflatten(names, "v", "root", "b", {2}, {"z"}).ok());
  REQUIRE(add_slice(names, "p", "u", {"z"}).ok());
  REQUIRE(add_slice(names, "q", "v", {"z"}).ok());
  CHECK(message(add_concatenate(names, "c", {"p", "q"})) == "mesh \"c\" would have two dims \"z\"; give each its own name");
}

TEST_CASE("dims that do not overlap in pairs may overlap together, or not tile: refused all the same") {
  // Of a world of 12: 2:6 and 3:2 leave no room that copies could fill beside 2:3.
  MeshTable table;
  REQUIRE(add_root(table, "root", 12, {}, {}).ok());
  REQUIRE(add_unflatten(table, "m", "root", "root", {2, 6}, {"a", "b"}).ok());
  REQUIRE(add_unflatten(table, "n", "root", "root", {4, 3}, {"c", "d"}).ok());
  REQUIRE(add_slice(table, "a", "m", {"a"}).ok());
  REQUIRE(add_slice(table, "c", "n", {"c"}).ok());
  CHECK_FALSE(add_concatenate(table, "x", {"a", "c"}).ok());  // 2:6 within 4:3
  REQUIRE(add_unflatten(table, "o", "root", "root", {3, 2, 2}, {"e", "f", "g"}).ok());
  REQUIRE(add_slice(table, "d", "n", {"d"}).ok());
  REQUIRE(add_slice(table, "f", "o", {"f"}).ok());
  CHECK(message(add_concatenate(table, "y", {"d", "f"})).find("cannot concatenate [\"d\", \"f\"]") == 0);  // 3:1 and 2:2 share rank 2
  REQUIRE(add_unflatten(table, "p", "root", "root", {2, 2, 3}, {"h", "i", "j"}).ok());
  REQUIRE(add_slice(table, "i", "p", {"i"}).ok());
  REQUIRE(add_slice(table, "g", "o", {"g"}).ok());
  CHECK(
      message(add_concatenate(table, "z", {"i", "g"})) ==
      "cannot concatenate [\"i\", \"g\"]: the copies of (2,2):(3,1) cannot tile a world: stride 3 is not a multiple of the 2 offsets below "
      "it");
}

TEST_CASE("a concatenation with more ranks than 64 bits count is refused") {
  MeshTable table;
  REQUIRE(add_root(table, "root", int64_t{1} << 62, {}, {}).ok());
  REQUIRE(add_slice(table, "again", "root", {"root"}).ok());
  CHECK(message(add_concatenate(table, "c", {"root", "again"})).find("share ranks") != std::string::npos);
}

TEST_CASE("transposes") {
  MeshTable table = world({0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23});
  REQUIRE(add_transpose(table, "t", "root", {"tp", "pp", "dp"}).ok());
  CHECK(mesh_shape(table.meshes[1]) == std::vector<int64_t>{4, 2, 3});
  CHECK(materialise(table.meshes[1])[1] == 8);  // dp 1
  CHECK(materialise(table.meshes[1])[3] == 1);  // pp 1
  CHECK(materialise(table.meshes[1])[6] == 2);  // tp 1
  CHECK_FALSE(same_devices(table.meshes[0], table.meshes[1]));
  CHECK_FALSE(add_transpose(table, "u", "root", {"tp", "tp"}).ok());
  CHECK_FALSE(add_transpose(table, "u", "root", {}).ok());
}

TEST_CASE("names are labels: equal rank maps and layouts are equal meshes") {
  MeshTable one = world();
  MeshTable two;
  REQUIRE(add_root(two, "world", 24, {}, {{"x", 2}, {"y", 3}, {"z", 4}}).ok());
  CHECK(same_devices(one.meshes[0], two.meshes[0]));
  std::vector<int64_t> shifted(24);
  for (int64_t i = 0; i < 24; ++i) shifted[static_cast<size_t>(i)] = i + 24;
  CHECK_FALSE(same_devices(one.meshes[0], world(shifted).meshes[0]));
}

}  // namespace meshplan
