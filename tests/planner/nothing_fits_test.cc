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

}  // namespace meshplan
