// Golden text and JSON of `meshplan mesh` for every operation. MESHPLAN_RECORD=1 in the environment rewrites the files of
// testdata/golden/mesh.
#include "render/mesh_view.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "mesh/coordinates.h"
#include "mesh/parallel_dims.h"
#include "render/mesh_picture.h"

namespace meshplan {
namespace {

void compare(const std::string& name, const std::string& text) {
  const std::string path = MESHPLAN_TESTDATA "/golden/mesh/" + name;
  if (std::getenv("MESHPLAN_RECORD") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path << " is missing; record it with MESHPLAN_RECORD=1");
  std::stringstream recorded;
  recorded << file.rdbuf();
  CHECK_MESSAGE(text == recorded.str(), path << " differs; now it is\n" << text);
}

struct Case {
  const char* name;
  std::function<Status(MeshTable&)> build;
  MeshViewOptions options;
};

Status all_of(std::initializer_list<std::function<Status()>> steps) {
  for (const auto& step : steps) {
    if (Status status = step(); !status) return status;
  }
  return Done{};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"root",
       [](MeshTable& t) {
         return add_root(t, "root", 16, {}, {{"dp", 2}, {"tp", 8}});
       },
       {}},
      {"one_dim", [](MeshTable& t) { return add_root(t, "world", 6, {}, {}); }, {.ranks = true}},
      {"one_rank",
       [](MeshTable& t) {
         return add_root(t, "world", 1, {}, {{"a", 1}, {"b", 1}});
       },
       {.ranks = true}},
      {"flattened",
       [](MeshTable& t) {
         return all_of({[&] {
                          return add_root(t, "mesh", 16, {}, {{"dp", 2}, {"cp", 2}, {"tp", 4}});
                        },
                        [&] {
                          return declare_flatten(t, "mesh", {"dp", "cp"});
                        },
                        [&] {
                          return declare_flatten(t, "mesh", {"dp", "tp"}, "data");
                        }});
       },
       {.ranks = true}},
      {"slice",
       [](MeshTable& t) {
         return all_of({[&] {
                          return add_root(t, "root", 24, {}, {{"pp", 2}, {"dp", 3}, {"tp", 4}});
                        },
                        [&] {
                          return add_slice(t, "outer", "root", {"pp", "dp"});
                        },
                        [&] {
                          return add_slice(t, "around", "root", {"pp", "tp"});
                        },
                        [&] { return add_slice(t, "own", "root", {"dp"}, "{\"timeout\":30}"); }});
       },
       {.ranks = true}},
      {"flatten",
       [](MeshTable& t) {
         return all_of({[&] {
                          return add_root(t, "root", 24, {}, {{"pp", 2}, {"dp", 3}, {"tp", 4}});
                        },
                        [&] {
                          return add_flatten(t, "", "root", {"dp", "tp"});
                        },
                        [&] {
                          return add_flatten(t, "around", "root", {"pp", "tp"}, "pt");
                        },
                        [&] {
                          return add_flatten(t, "everything", "root", {"pp", "dp", "tp"}, "all");
                        }});
       },
       {.ranks = true}},
      {"unflatten",
       [](MeshTable& t) {
         return all_of({[&] {
                          return add_root(t, "root", 16, {}, {{"dp", 2}, {"tp", 8}});
                        },
                        [&] {
                          return add_unflatten(t, "split", "root", "tp", {2, 4}, {"host", "chip"});
                        },
                        [&] {
                          return add_flatten(t, "again", "split", {"host", "chip"}, "tp2");
                        }});
       },
       {.world_group = WorldGroup::skip}},
      {"concatenate",
       [](MeshTable& t) {
         return all_of({[&] {
                          return add_root(t, "root", 16, {}, {{"dp", 2}, {"cp", 2}, {"tp", 4}});
                        },
                        [&] { return add_slice(t, "rows", "root", {"dp"}); }, [&] { return add_slice(t, "columns", "root", {"tp"}); },
                        [&] {
                          return add_concatenate(t, "both", {"rows", "columns"});
                        },
                        [&] {
                          return add_concatenate(t, "turned", {"columns", "rows"});
                        }});
       },
       {.ranks = true}},
      {"transpose",
       [](MeshTable& t) {
         return all_of({[&] {
                          return add_root(t, "root", 8, {}, {{"dp", 2}, {"tp", 4}});
                        },
                        [&] {
                          return add_transpose(t, "turned", "root", {"tp", "dp"});
                        }});
       },
       {.ranks = true}},
      {"permuted",
       [](MeshTable& t) {
         return all_of({[&] {
                          return add_root(t, "root", 8, {1, 0, 3, 2, 7, 6, 5, 4}, {{"dp", 2}, {"tp", 4}});
                        },
                        [&] { return add_slice(t, "tp", "root", {"tp"}); }});
       },
       {.ranks = true}},
      {"partial",
       [](MeshTable& t) {
         std::vector<int64_t> ranks;
         for (int64_t rank = 2048; rank < 4096; ++rank) ranks.push_back(rank);
         return add_root(t, "second_half", 2048, std::move(ranks), {{"dp", 256}, {"tp", 8}});
       },
       {}},
      {"parallel_dims",
       [](MeshTable& t) {
         return add_parallel_dims(t, {.world = 64, .dp_replicate = 2, .dp_shard = -1, .cp = 2, .tp = 8, .ep = 8, .etp = 1});
       },
       {}},
      {"million",
       [](MeshTable& t) {
         return add_root(t, "mesh", 1'048'576, {}, {{"pp", 16}, {"dp", 16}, {"fsdp", 64}, {"cp", 4}, {"ep", 2}, {"tp", 8}});
       },
       {}},
      {"rank_of_million",
       [](MeshTable& t) {
         return all_of(
             {[&] {
                return add_root(t, "mesh", 1'048'576, {}, {{"pp", 16}, {"dp", 16}, {"fsdp", 64}, {"cp", 4}, {"ep", 2}, {"tp", 8}});
              },
              [&] {
                return add_slice(t, "outer", "mesh", {"pp", "fsdp", "tp"});
              }});
       },
       {.rank = 777'777}},
      {"rank_permuted",
       [](MeshTable& t) {
         return all_of({[&] {
                          return add_root(t, "root", 8, {11, 10, 13, 12, 17, 16, 15, 14}, {{"dp", 2}, {"tp", 4}});
                        },
                        [&] { return add_slice(t, "tp", "root", {"tp"}); }});
       },
       {.rank = 17}},
      {"color",
       [](MeshTable& t) {
         return add_root(t, "root", 8, {}, {{"dp", 2}, {"tp", 4}});
       },
       {.color = true}},
      {"narrow",
       [](MeshTable& t) {
         return add_root(t, "root", 64, {}, {{"dp", 2}, {"cp", 2}, {"tp", 16}});
       },
       {.width = 30}},
  };
  return all;
}

}  // namespace

TEST_CASE("text and JSON of every operation") {
  for (const Case& entry : cases()) {
    CAPTURE(entry.name);
    MeshTable table;
    const Status built = entry.build(table);
    REQUIRE_MESSAGE(built.ok(), (built.ok() ? "" : built.error().message));
    compare(entry.name + std::string(".txt"), mesh_view_text(table, entry.options).value());
    const std::string json = mesh_view_json(table, entry.options).value();
    compare(entry.name + std::string(".json"), json);
    const auto parsed = nlohmann::json::parse(json);
    CHECK(parsed["schema"] == "meshplan/mesh/1");
    CHECK(parsed["meshes"].size() == table.meshes.size());
    for (const auto& group : parsed["groups"]) {
      CHECK(group["size"].get<int64_t>() * group["count"].get<int64_t>() == table.meshes.front().universe->world);
      CHECK(group.contains("ranks") == entry.options.ranks);
    }
  }
}

TEST_CASE("a rank that is not there is refused") {
  MeshTable table;
  REQUIRE(add_root(table, "root", 4, {4, 5, 6, 7}, {{"a", 2}, {"b", 2}}).ok());
  CHECK(mesh_view_text(table, {.rank = 3}).error().message == "rank 3 is not in the world of 4 ranks mapped to 4 5 6 7");
  CHECK(mesh_view_json(table, {.rank = 8}).error().message == "rank 8 is not in the world of 4 ranks mapped to 4 5 6 7");
  MeshTable plain;
  REQUIRE(add_root(plain, "root", 4, {}, {}).ok());
  CHECK(mesh_view_json(plain, {.rank = -1}).error().message == "rank -1 is not in the world of 4 ranks, 0 to 3");
}

TEST_CASE("what is printed does not grow with the world") {
  const auto length = [](int64_t data) {
    MeshTable table;
    REQUIRE(add_root(table, "mesh", data * 64, {}, {{"pp", 4}, {"dp", data}, {"tp", 16}}).ok());
    return mesh_view_text(table, {}).value().size();
  };
  CHECK(length(1 << 30) < 2 * length(64));
}

TEST_CASE("group letters are distinct") {
  CHECK(group_letters(0) == "a");
  CHECK(group_letters(25) == "z");
  CHECK(group_letters(26) == "A");
  CHECK(group_letters(51) == "Z");
  CHECK(group_letters(52) == "aa");
  CHECK(group_letters(52 + 52 * 52) == "aaa");
}

TEST_CASE("names that need escapes stay one JSON string") {
  MeshTable table;
  REQUIRE(add_root(table, "a\"b\\\n\xff", 2, {}, {}).ok());
  const auto parsed = nlohmann::json::parse(mesh_view_json(table, {}).value());
  CHECK(parsed["meshes"][0]["name"].get<std::string>().substr(0, 5) == "a\"b\\\n");
  MeshTable escape;
  REQUIRE(add_root(escape, "m\x1b[31m", 4, {}, {{"a\n", 2}, {"b", 2}}).ok());
  const std::string text = mesh_view_text(escape, {.ranks = true}).value();
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\nm\\u001b[31m: a\\n 2 x b 2\n") != std::string::npos);
}

}  // namespace meshplan
