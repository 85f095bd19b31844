// Questions on one mesh, asked of the whole planner.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "../cost/small_mesh.h"
#include "planner/planner.h"

namespace meshplan::test {

class OneMesh {
 public:
  OneMesh(std::vector<int64_t> sizes, Topology topology) : sizes_(std::move(sizes)), topology_(std::move(topology)) {
    meshes_.meshes = {mesh_of(sizes_)};
  }

  [[nodiscard]] const Mesh& mesh() const { return meshes_.meshes[0]; }
  [[nodiscard]] const std::vector<int64_t>& sizes() const { return sizes_; }
  [[nodiscard]] Request request(const std::vector<int64_t>& shape, const std::string& src, const std::string& dst) const {
    return request(shape, parse_state(src, sizes_, shape.size()).value(), parse_state(dst, sizes_, shape.size()).value());
  }
  [[nodiscard]] static Request request(const std::vector<int64_t>& shape, State src, State dst) {
    Request r;
    r.id = "a";
    r.tensor = {shape, DType::float32};
    r.src = std::move(src);
    r.dst = std::move(dst);
    return r;
  }
  [[nodiscard]] Plan plan(const Request& request, const PlanOptions& options) const {
    PlanOutcome outcome = plan_requests(meshes_, topology_, {request}, options, "");
    REQUIRE(outcome.failures.empty());
    return std::move(outcome.plan);
  }

 private:
  std::vector<int64_t> sizes_;
  MeshTable meshes_;
  Topology topology_;
};

// nullptr: it has no finding of that code.
inline const AuditFinding* finding_of(const PlannedRedistribution& planned, const std::string& code) {
  for (const AuditFinding& found : planned.audit) {
    if (found.code == code) return &found;
  }
  return nullptr;
}

}  // namespace meshplan::test
