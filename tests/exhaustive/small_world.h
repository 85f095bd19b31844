// A mesh, a topology and the planner's answer for pairs of states on it.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "../cost/all_states.h"
#include "../cost/small_mesh.h"
#include "cost/step_cost.h"
#include "search/optimal.h"

namespace meshplan::test {

class SmallWorld {
 public:
  SmallWorld(std::vector<int64_t> sizes, Topology topology, std::vector<int64_t> shape)
      : sizes_(std::move(sizes)), topology_(std::move(topology)) {
    meshes_.meshes = {mesh_of(sizes_)};
    levels_ = std::make_unique<LevelMap>(meshes_.meshes[0], topology_);
    tensor_ = {std::move(shape), DType::float32};
  }
  SmallWorld(const SmallWorld&) = delete;  // the level map points at the mesh and the topology beside it
  SmallWorld& operator=(const SmallWorld&) = delete;

  [[nodiscard]] const std::vector<int64_t>& sizes() const { return sizes_; }
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const Mesh& mesh() const { return meshes_.meshes[0]; }
  [[nodiscard]] const MeshTable& meshes() const { return meshes_; }
  [[nodiscard]] const LevelMap& levels() const { return *levels_; }
  [[nodiscard]] const TensorMeta& tensor() const { return tensor_; }
  [[nodiscard]] MeshTable& meshes() { return meshes_; }

  // The planner's answer, priced; its plan must be proven the cheapest. nullopt: nothing within the memory limit.
  [[nodiscard]] std::optional<PlannedRedistribution> plan(const State& src, const State& dst, const PlanOptions& options) const {
    PlannedRedistribution planned;
    planned.request.tensor = tensor_;
    planned.request.src = src;
    planned.request.dst = dst;
    auto list = plan_optimal({&meshes_, &topology_, &planned.request, &options}, *levels_);
    if (!list) return std::nullopt;
    CHECK(list->shortcuts == Shortcuts{});
    planned.dst = list->dst;
    planned.steps = std::move(list->steps);
    price_redistribution(planned, meshes_, topology_);
    return planned;
  }

 private:
  std::vector<int64_t> sizes_;
  Topology topology_;
  MeshTable meshes_;
  std::unique_ptr<LevelMap> levels_;
  TensorMeta tensor_;
};

// "from P(sum)S(0) to RR", for CAPTURE.
inline std::string pair_text(const State& src, const State& dst, const std::vector<int64_t>& sizes) {
  return "from " + to_text(src, sizes) + " to " + to_text(dst, sizes);
}

}  // namespace meshplan::test
