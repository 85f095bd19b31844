// PyTorch's own answers for 149 programs of mesh operations (testdata/vectors/layouts.json): the same shapes, layouts and rank lists, and
// an error where PyTorch raises.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "mesh/build.h"
#include "mesh/mesh_table.h"

using nlohmann::json;

namespace meshplan {
namespace {

std::vector<std::vector<int64_t>> group_ranks(const Mesh& mesh, size_t dim) {
  const Layout& layout = mesh.dims[dim].layout;
  const auto copies = complement(layout, mesh.universe->world);
  REQUIRE(copies.ok());
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t base : offsets(*copies)) {
    std::vector<int64_t> group;
    for (const int64_t offset : offsets(layout)) group.push_back(rank_at(*mesh.universe, base + offset));
    groups.push_back(group);
  }
  return groups;
}

Status apply(MeshTable& table, const json& op) {
  const std::string kind = op["op"];
  const std::string out = op["out"];
  if (kind == "concatenate") return add_concatenate(table, out, op["of"].get<std::vector<std::string>>());
  const std::string of = op["of"];
  if (kind == "slice") return add_slice(table, out, of, op["names"].get<std::vector<std::string>>());
  if (kind == "unflatten") {
    return add_unflatten(table, out, of, op["dim"].get<std::string>(), op["sizes"].get<std::vector<int64_t>>(),
                         op["names"].get<std::vector<std::string>>());
  }
  REQUIRE(kind == "flatten");
  const auto index = find_mesh(table, of);
  REQUIRE(index.has_value());
  return add_flatten(table, out, of, dim_names(table.meshes[*index]), op["name"].is_null() ? "" : op["name"].get<std::string>());
}

void flatten_into(const json& nested, std::vector<int64_t>& flat) {
  if (!nested.is_array()) return flat.push_back(nested.get<int64_t>());
  for (const json& inner : nested) flatten_into(inner, flat);
}

}  // namespace

TEST_CASE("PyTorch's mesh programs") {
  std::ifstream file(MESHPLAN_TESTDATA "/vectors/layouts.json");
  const json programs = json::parse(file).at("mesh_programs");
  REQUIRE(programs.size() == 149);
  int results = 0;
  int errors = 0;
  for (size_t p = 0; p < programs.size(); ++p) {
    const json& program = programs[p];
    CAPTURE(p);
    std::vector<std::pair<std::string, int64_t>> dims;
    int64_t world = 1;
    for (size_t i = 0; i < program["shape"].size(); ++i) {
      dims.emplace_back(program["dim_names"][i], program["shape"][i]);
      world *= dims.back().second;
    }
    MeshTable table;
    REQUIRE(add_root(table, "root", world, program["ranks"].get<std::vector<int64_t>>(), dims).ok());
    for (const json& op : program["ops"]) {
      CAPTURE(op.dump());
      const Status status = apply(table, op);
      if (op.contains("error")) {
        CHECK_FALSE(status.ok());
        ++errors;
        continue;
      }
      REQUIRE_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message));
      const Mesh& mesh = table.meshes[*find_mesh(table, op["out"].get<std::string>())];
      const json& result = op["result"];
      CHECK(dim_names(mesh) == result["dim_names"].get<std::vector<std::string>>());
      CHECK(mesh_shape(mesh) == result["shape"].get<std::vector<int64_t>>());
      for (size_t i = 0; i < mesh.dims.size(); ++i) {
        std::vector<Mode> modes;
        for (size_t k = 0; k < result["axes"][i]["sizes"].size(); ++k) {
          modes.push_back({result["axes"][i]["sizes"][k].get<int64_t>(), result["axes"][i]["strides"][k].get<int64_t>()});
        }
        CHECK(mesh.dims[i].layout == coalesce(Layout{modes}));
        // PyTorch lists groups by ascending base offset, members in mesh order, through the rank map.
        CHECK(group_ranks(mesh, i) == result["groups"][mesh.dims[i].name].get<std::vector<std::vector<int64_t>>>());
      }
      // PyTorch shows rank 0's copy; the copies are those of `position_of`.
      std::vector<int64_t> shown;
      flatten_into(result["mesh"], shown);
      bool found = false;
      for (int64_t copy = 0; copy < mesh_copies(mesh); ++copy) {
        std::vector<int64_t> ranks;
        for (int64_t i = 0; i < mesh_size(mesh); ++i) ranks.push_back(rank_at(*mesh.universe, position_of(mesh, copy, i)));
        if (copy == 0) CHECK(ranks == materialise(mesh));
        found = found || ranks == shown;
      }
      CHECK(found);
      ++results;
    }
  }
  CHECK(results == 421);
  CHECK(errors == 82);
}

}  // namespace meshplan
