#include "mesh/parallel_dims.h"

#include <doctest/doctest.h>

#include "mesh/groups.h"

namespace meshplan {
namespace {

std::string layouts(const MeshTable& table, const std::string& name) {
  const Mesh& mesh = table.meshes[find_mesh(table, name).value()];
  std::string text;
  for (const MeshDim& dim : mesh.dims) text += (text.empty() ? "" : " ") + dim.name + "=" + to_text(dim.layout);
  return text;
}

std::string refusal(const ParallelDims& dims) {
  MeshTable table;
  const Status status = add_parallel_dims(table, dims);
  REQUIRE_FALSE(status.ok());
  CHECK(table.meshes.empty());  // nothing half made
  return status.error().message;
}

}  // namespace

TEST_CASE("the meshes of the preset") {
  MeshTable table;
  REQUIRE(add_parallel_dims(table, {.world = 64, .pp = 2, .dp_replicate = 2, .dp_shard = -1, .cp = 2, .tp = 4, .ep = 4, .etp = 1}).ok());
  CHECK(layouts(table, "world") == "world=64:1");
  CHECK(layouts(table, "data") == "pp=2:32 batch=4:8 cp=2:4 tp=4:1");
  CHECK(layouts(table, "dense") == "pp=2:32 dp_replicate=2:16 dp_shard=2:8 cp=2:4 tp=4:1");
  CHECK(layouts(table, "sparse") == "pp=2:32 dp_replicate=2:16 edp=4:4 ep=4:1 etp=1:0");
  CHECK(layouts(table, "batch") == "batch=4:8");
  CHECK(layouts(table, "fsdp") == "fsdp=4:4");
  CHECK(layouts(table, "loss") == "loss=8:4");
  // One communicator per layout: batch of data is batch of dense, edp is fsdp, ep is tp.
  CHECK(group_table(table).size() == 10);  // world pp batch cp tp dp_replicate dp_shard 1:0 fsdp loss
  const Mesh& dense = table.meshes[2];
  CHECK(find_flatten(table, dense, {1, 2})->name == "batch");
  CHECK(find_flatten(table, dense, {3, 2})->name == "fsdp");
  CHECK(find_flatten(table, dense, {1, 2, 3})->name == "loss");
  CHECK(find_native_flatten(table, dense, {0, 1, 2, 3, 4})->name == "world");
}

TEST_CASE("DeepSeek-V3's and Llama 405B's degrees") {
  const auto moe = resolve({.world = 512, .pp = 4, .dp_shard = 16, .tp = 8, .ep = 32});
  REQUIRE(moe.ok());
  MeshTable table;
  REQUIRE(add_parallel_dims(table, *moe).ok());
  CHECK(layouts(table, "sparse") == "pp=4:128 dp_replicate=1:0 edp=4:32 ep=32:1 etp=1:0");
  CHECK(resolve({.world = 16'384, .pp = 16, .dp_replicate = 2, .dp_shard = 64, .tp = 8})->dp_shard == 64);
  CHECK(resolve({.world = 16'384, .pp = 16, .dp_replicate = 2, .dp_shard = -1, .tp = 8})->dp_shard == 64);
}

TEST_CASE("etp is tp or 1") {
  MeshTable table;
  REQUIRE(add_parallel_dims(table, {.world = 32, .tp = 4, .ep = 4, .etp = 4}).ok());
  CHECK(layouts(table, "sparse") == "pp=1:0 dp_replicate=1:0 edp=2:16 ep=4:4 etp=4:1");
  CHECK(refusal({.world = 32, .tp = 4, .etp = 2}) == "parallel_dims has etp 2 with tp 4; etp must be equal to tp or 1");
}

TEST_CASE("what does not divide shows its arithmetic, never a rounded-up world") {
  CHECK(refusal({.world = 512, .pp = 4, .dp_shard = 8, .tp = 8}) ==
        "parallel_dims does not fill the world: pp 4 * dp_replicate 1 * dp_shard 8 * cp 1 * tp 8 = 256, not 512");
  CHECK(refusal({.world = 100, .tp = 8}) ==
        "parallel_dims cannot compute dp_shard: pp 1 * dp_replicate 1 * cp 1 * tp 8 = 8 does not divide the world of 100");
  CHECK(refusal({.world = 64, .tp = 8, .ep = 24}) ==
        "parallel_dims has no integral edp: dp_shard 8 * cp 1 * tp 8 = 64 is not divisible by ep 24 * etp 1 = 24");
  CHECK(refusal({.world = 64, .tp = 8, .ep = 128}) ==
        "parallel_dims has no integral edp: dp_shard 8 * cp 1 * tp 8 = 64 is not divisible by ep 128 * etp 1 = 128");
  CHECK(refusal({.world = 64, .cp = 0}) == "parallel_dims has cp 0; degrees must be 1 or more (dp_shard may be -1: the remaining ranks)");
  CHECK(refusal({.world = 64, .dp_shard = -2}) ==
        "parallel_dims has dp_shard -2; degrees must be 1 or more (dp_shard may be -1: the remaining ranks)");
  CHECK(refusal({.world = 0}) == "parallel_dims over a world of 0 ranks; expected 1 or more");
  CHECK(refusal({.world = 8, .pp = INT64_MAX, .tp = 2}).find("more than 64 bits") != std::string::npos);
  CHECK(refusal({.world = 8, .ep = INT64_MAX, .etp = 1}).find("is not divisible by ep 9223372036854775807") != std::string::npos);
}

TEST_CASE("the preset beside another universe has its own; twice it has no names left") {
  MeshTable table;
  REQUIRE(add_root(table, "root", 8, {}, {}).ok());
  REQUIRE(add_parallel_dims(table, {.world = 8}).ok());
  CHECK(universes_of(table).size() == 2);
  CHECK(table.meshes.size() == 8);
  CHECK_FALSE(add_parallel_dims(table, {.world = 8}).ok());
  CHECK(table.meshes.size() == 8);
}

}  // namespace meshplan
