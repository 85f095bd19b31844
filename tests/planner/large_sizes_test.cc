// Tensors whose bytes times the ranks of a group, or times 100, are beyond 64 bits: they were priced far below their bound, and planning ended
// with exit 70.
#include <doctest/doctest.h>

#include "../cost/small_mesh.h"
#include "cost/topology.h"
#include "planner/planner.h"

namespace meshplan {
namespace {

// 2^59 bytes.
const std::vector<int64_t> large{int64_t{1} << 28, int64_t{1} << 31};

Totals totals_of(const Mesh& mesh, const char* topology, const char* src, const char* dst) {
  MeshTable meshes;
  meshes.meshes = {mesh};
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  Request request;
  request.id = "x";
  request.tensor = {large, DType::int8};
  request.src = *parse_state(src, sizes, large.size());
  request.dst = *parse_state(dst, sizes, large.size());
  PlanOptions options;
  options.max_memory_bytes = -1;
  // Verified by plan_requests.
  PlanOutcome outcome = plan_requests(meshes, *topology_preset(topology), {request}, options, "");
  REQUIRE(outcome.failures.empty());
  return outcome.plan.redistributions.front().totals;
}

Totals totals_of_large(int64_t ranks, const char* topology, const char* src, const char* dst) {
  return totals_of(test::mesh_of({ranks}), topology, src, dst);
}

}  // namespace

TEST_CASE("collectives of more bytes times ranks than 64 bits hold take no less than their bound") {
  for (const char* topology : {"uniform", "a100", "h100", "mi300x", "tpu-v5p"}) {
    for (const int64_t ranks : {int64_t{64}, int64_t{4'096}, int64_t{1} << 20}) {
      for (const auto& [src, dst] : {std::pair{"S(0)", "R"}, {"P(sum)", "R"}, {"P(sum)", "S(0)"}, {"S(1)", "S(0)"}}) {
        CAPTURE(topology);
        CAPTURE(ranks);
        CAPTURE(src);
        CAPTURE(dst);
        const Totals totals = totals_of_large(ranks, topology, src, dst);
        CHECK(totals.predicted_ps >= totals.lower_bound_ps);
      }
    }
  }
}

// What a step inside of units takes at least was asked for, over no links: a division by zero, which ended the process from 2^53 on.
TEST_CASE("large tensors on ranks that are all in units of their own are planned") {
  for (const char* topology : {"a100", "h100", "mi300x"}) {
    for (const auto& [src, dst] : {std::pair{"S(0)", "R"}, {"P(sum)", "R"}, {"P(sum)", "S(0)"}, {"S(1)", "S(0)"}}) {
      const Totals totals = totals_of(test::mesh_of({2}, {0, 8}), topology, src, dst);
      CHECK(totals.predicted_ps >= totals.lower_bound_ps);
    }
  }
}

TEST_CASE("an all_gather of 2^59 bytes on 4,096 ranks takes them at the rate of its link") {
  // 4,095 / 4,096 of 2^59 bytes at 100 GB/s, and 10 us.
  const int64_t bytes = (int64_t{1} << 59) / 4'096 * 4'095;
  CHECK(totals_of_large(4'096, "uniform", "S(0)", "R").predicted_ps == bytes * 10 + 10'000'000);
}

}  // namespace meshplan
