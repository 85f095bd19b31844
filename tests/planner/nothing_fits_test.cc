// What a memory limit that no plan keeps to is told, where the question is too hard to be searched to the end.
#include <doctest/doctest.h>

#include <string>

#include "cost/topology.h"
#include "planner/planner.h"

namespace meshplan {

TEST_CASE("of a hard question a limit is told that far less memory keeps to than one exchange takes") {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 12 * 32 * 4 * 2, {}, {{"dp", 12}, {"fsdp", 32}, {"cp", 4}, {"tp", 2}}).ok());
  const std::vector<int64_t> sizes = mesh_shape(meshes.meshes[0]);
  Request request;
  request.tensor = {{8, 1000, 4096}, DType::float32};
  request.src = *parse_state("S(0)[0]S(0)[1]RS(2)", sizes, 3);
  request.dst = *parse_state("RRS(1)[0]S(1)[1]", sizes, 3);
  PlanOptions options;
  options.max_memory_bytes = 30'000'000;
  const PlanOutcome none = plan_requests(meshes, *topology_preset("h100"), {request}, options, "");
  REQUIRE(none.failures.size() == 1);
  const std::string& message = none.failures[0].error.message;
  CAPTURE(message);
  CHECK(message.find("of those that the search had the work to look at: one takes 33280000 bytes per rank at its peak") !=
        std::string::npos);
  options.max_memory_bytes = 33'280'000;
  const PlanOutcome fits = plan_requests(meshes, *topology_preset("h100"), {request}, options, "");
  REQUIRE(fits.failures.empty());
  CHECK(fits.plan.redistributions[0].totals.peak_bytes <= 33'280'000);
}

TEST_CASE("the least peak that exists may be that of a local step over a mesh dim that levels cut") {
  // b is 2 x 2 on units of 4, and making P(sum) of S(0) on one part of it, then on the other, holds half of the tensor between.
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 48, {}, {{"a", 6}, {"b", 4}, {"c", 2}}).ok());
  const std::vector<int64_t> sizes = mesh_shape(meshes.meshes[0]);
  Topology topology;
  topology.levels = {{"nv", 4, 100'000, 3'000, 0}, {"ib", 1'048'576, 10'000, 9'000, 0}};
  Request request;
  request.tensor = {{5003}, DType::float16};
  request.src = *parse_state("S(0)P(sum)R", sizes, 1);
  request.dst = *parse_state("RP(sum)R", sizes, 1);
  PlanOptions options;
  const auto planned_within = [&](int64_t bytes) {
    options.max_memory_bytes = bytes;
    return plan_requests(meshes, topology, {request}, options, "");
  };
  for (const int64_t bytes : {1, 12'507}) {
    const PlanOutcome none = planned_within(bytes);
    REQUIRE(none.failures.size() == 1);
    CHECK(none.failures[0].error.message.find("the least peak that exists is 12508 bytes per rank") != std::string::npos);
  }
  const PlanOutcome fits = planned_within(12'508);
  REQUIRE(fits.failures.empty());
  CHECK(fits.plan.redistributions[0].totals.peak_bytes == 12'508);
}

TEST_CASE("of plans that take the same, one exchange is not taken where a collective needs less memory") {
  const auto planned_as = [](const std::vector<std::pair<std::string, int64_t>>& dims, const char* topology, const TensorMeta& tensor,
                             const std::string& src, const std::string& dst) {
    MeshTable meshes;
    int64_t ranks = 1;
    for (const auto& [name, size] : dims) ranks *= size;
    REQUIRE(add_root(meshes, "mesh", ranks, {}, dims).ok());
    const std::vector<int64_t> sizes = mesh_shape(meshes.meshes[0]);
    Request request;
    request.tensor = tensor;
    request.src = *parse_state(src, sizes, tensor.shape.size());
    request.dst = *parse_state(dst, sizes, tensor.shape.size());
    PlanOutcome outcome = plan_requests(meshes, *topology_preset(topology), {request}, {}, "");
    REQUIRE(outcome.failures.empty());
    return outcome.plan.redistributions[0].totals;
  };
  const Totals scattered = planned_as({{"a", 7}, {"b", 2}}, "mi300x", {{1024, 10, 128}, DType::float32}, "P(min)S(1)", "S(2)S(1)");
  CHECK(scattered.predicted_ps == 131'482'191);
  CHECK(scattered.peak_bytes == 5'734'400);  // by one exchange 7,680,000
  const Totals sliced = planned_as({{"a", 2}, {"b", 4}, {"c", 4}}, "gb200", {{1000, 1000, 12}, DType::float32}, "RRS(2)", "S(0)RS(1)");
  CHECK(sliced.predicted_ps == 31'740'260);
  CHECK(sliced.peak_bytes == 24'000'000);  // by one exchange 27,000,000
}

}  // namespace meshplan
