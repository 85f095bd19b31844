// Cases recorded from PyTorch (testdata/vectors/redistribute.json), read for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost/topology.h"
#include "mesh/mesh_table.h"
#include "planner/planner.h"
#include "tensor/request.h"

namespace meshplan::test {

// {"source", "seed", "cases": [...]}, from testdata/vectors or from any path.
[[nodiscard]] nlohmann::json read_json(const std::string& path);
[[nodiscard]] nlohmann::json read_vectors(const std::string& name);

struct TorchCase {
  MeshTable meshes;
  Request request;
};
[[nodiscard]] TorchCase torch_case(const nlohmann::json& json);

// The steps as the vectors write them: mesh_dims, src, dst, logical_shape, avg_scale.
[[nodiscard]] nlohmann::json steps_json(const State& src, const std::vector<Step>& steps, std::span<const int64_t> mesh_shape);
// The warnings as the vectors write them.
[[nodiscard]] nlohmann::json warnings_json(const std::vector<Warning>& warnings);

// Whether PyTorch's steps can be executed at all.
[[nodiscard]] bool executable(const nlohmann::json& planner_entry);

}  // namespace meshplan::test
