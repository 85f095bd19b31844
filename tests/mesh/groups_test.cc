#include "mesh/groups.h"

#include <doctest/doctest.h>

#include <set>

namespace meshplan {
namespace {

const Group& group_named(const std::vector<Group>& groups, const std::string& mesh, const std::string& name) {
  for (const Group& group : groups) {
    for (const GroupUser& user : group.users) {
      if (user.mesh == mesh && user.name == name) return group;
    }
  }
  FAIL("no group for " << mesh << "." << name);
  return groups.front();
}

}  // namespace

TEST_CASE("a second name for a layout shares its communicators") {
  MeshTable table;
  REQUIRE(add_root(table, "root", 16, {}, {{"a", 2}, {"b", 8}}).ok());
  REQUIRE(add_unflatten(table, "split", "root", "b", {2, 4}, {"bo", "bi"}).ok());
  REQUIRE(add_flatten(table, "again", "split", {"bo", "bi"}, "b2").ok());
  REQUIRE(add_slice(table, "only_a", "root", {"a"}).ok());
  const std::vector<Group> groups = group_table(table);
  const Group& b = group_named(groups, "root", "b");
  CHECK(&b == &group_named(groups, "again", "b2"));
  CHECK(b.users == std::vector<GroupUser>{{"root", "b", {"b"}}, {"again", "b2", {"b2"}}});
  CHECK(b.size == 8);
  CHECK(b.count == 2);
  CHECK(&group_named(groups, "root", "a") == &group_named(groups, "only_a", "a"));
  CHECK(&group_of(groups, table.meshes[0], table.meshes[0].dims[1]) == &b);
  CHECK(groups.size() == 4);  // a, b, bo, bi
  // The world's communicator and four splits of it: a 8 x 2, b 2 x 8, bo 8 x 2, bi 4 x 4.
  CHECK(counts_with_world_group(table) == GroupCounts{1 + 8 + 2 + 8 + 4, 4, 16 * 5});
  CHECK(counts_without_world_group(table) == GroupCounts{8 + 2 + 8 + 4, 0, 16 * 4});
}

TEST_CASE("other group options make other communicators, views keep the options of what they are taken from") {
  MeshTable table;
  REQUIRE(add_root(table, "root", 8, {}, {{"a", 2}, {"b", 4}}, "{\"p\":1}").ok());
  REQUIRE(add_slice(table, "same", "root", {"b"}).ok());
  REQUIRE(add_slice(table, "other", "root", {"b"}, "{\"p\":2}").ok());
  const std::vector<Group> groups = group_table(table);
  CHECK(&group_named(groups, "root", "b") == &group_named(groups, "same", "b"));
  CHECK(&group_named(groups, "root", "b") != &group_named(groups, "other", "b"));
  CHECK(groups.size() == 3);
}

TEST_CASE("the world's group is the world communicator under init, and made on demand under skip") {
  MeshTable table;
  REQUIRE(add_root(table, "world", 8, {}, {}).ok());
  CHECK(counts_with_world_group(table) == GroupCounts{1, 0, 8});
  CHECK(counts_without_world_group(table) == GroupCounts{1, 0, 8});
  REQUIRE(add_unflatten(table, "m", "world", "world", {1, 4, 2}, {"one", "a", "b"}).ok());
  // A group of one rank needs no communicator.
  CHECK(counts_with_world_group(table) == GroupCounts{1 + 2 + 4, 2, 24});
  CHECK(counts_without_world_group(table) == GroupCounts{1 + 2 + 4, 0, 24});
  // With options of its own, a group of the whole world is another communicator.
  REQUIRE(add_flatten(table, "all", "m", {"a", "b"}, "all", "{\"p\":1}").ok());
  CHECK(counts_with_world_group(table) == GroupCounts{1 + 2 + 4 + 1, 3, 32});
}

TEST_CASE("a flatten declared without a mesh has a group of its own dims") {
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 16, {}, {{"a", 2}, {"b", 2}, {"c", 4}}).ok());
  REQUIRE(declare_flatten(table, "mesh", {"a", "c"}, {}).ok());
  const std::vector<Group> groups = group_table(table);
  REQUIRE(groups.size() == 4);
  CHECK(groups[3].users == std::vector<GroupUser>{{"mesh", "a_c", {"a", "c"}}});
  CHECK(to_text(groups[3].layout) == "(2,4):(8,1)");
  CHECK(groups[3].count == 2);
}

TEST_CASE("communicators partition the world, in mesh order through the rank map") {
  MeshTable table;
  const std::vector<int64_t> ranks{1, 0, 3, 2, 9, 8, 11, 10};
  REQUIRE(add_root(table, "root", 8, ranks, {{"a", 2}, {"b", 2}, {"c", 2}}).ok());
  REQUIRE(add_flatten(table, "ac", "root", {"a", "c"}).ok());
  REQUIRE(add_transpose(table, "turned", "root", {"c", "a", "b"}).ok());
  REQUIRE(add_concatenate(table, "cat", {"ac"}).ok());
  for (const Group& group : group_table(table)) {
    const auto lists = group_ranks(*group.universe, group.layout);
    REQUIRE(static_cast<int64_t>(lists.size()) == group.count);
    std::multiset<int64_t> seen;
    for (const auto& list : lists) {
      CHECK(static_cast<int64_t>(list.size()) == group.size);
      seen.insert(list.begin(), list.end());
    }
    CHECK(seen == std::multiset<int64_t>(ranks.begin(), ranks.end()));
  }
  // PyTorch sorts each list where it makes a group of permuted ranks; coordinates and ranks of the group then disagree and data goes wrong.
  CHECK(group_ranks(*table.meshes[1].universe, table.meshes[1].dims[0].layout) ==
        std::vector<std::vector<int64_t>>{{1, 0, 9, 8}, {3, 2, 11, 10}});
}

TEST_CASE("a root of one dim is the flatten of every view that covers the world, under the native rules only") {
  MeshTable table;
  REQUIRE(add_root(table, "world", 16, {}, {}).ok());
  REQUIRE(add_unflatten(table, "m", "world", "world", {2, 8}, {"a", "b"}).ok());
  REQUIRE(add_slice(table, "part", "m", {"b"}).ok());
  CHECK(find_flatten(table, table.meshes[1], {0, 1}) == nullptr);
  const auto native = find_native_flatten(table, table.meshes[1], {1, 0});
  REQUIRE(native.has_value());
  CHECK(native->name == "world");
  CHECK_FALSE(find_native_flatten(table, table.meshes[2], {0}).has_value());

  MeshTable simple;
  REQUIRE(add_root(simple, "mesh", 16, {}, {{"a", 2}, {"b", 8}}).ok());
  CHECK_FALSE(find_native_flatten(simple, simple.meshes[0], {0, 1}).has_value());
  REQUIRE(declare_flatten(simple, "mesh", {"a", "b"}).ok());
  CHECK(find_native_flatten(simple, simple.meshes[0], {0, 1})->name == "a_b");
}

}  // namespace meshplan
