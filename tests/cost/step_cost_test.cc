// Steps whose sizes come near the end of 64 bits: what is above it is held there, so that more never looks like less.
#include "cost/step_cost.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "cost/topology.h"
#include "mesh/mesh.h"

namespace meshplan {
namespace {

// One step on a mesh of one dim.
StepCost price(const Topology& topology, int64_t ranks, const TensorMeta& tensor, const std::string& before, Op op,
               const std::string& after) {
  const auto mesh = make_mesh("mesh", {{"a", ranks}});
  REQUIRE(mesh.ok());
  const std::vector<int64_t> sizes{ranks};
  const auto from = parse_state(before, sizes, tensor.shape.size());
  const auto to = parse_state(after, sizes, tensor.shape.size());
  REQUIRE(from.ok());
  REQUIRE(to.ok());
  Step step;
  step.op = op;
  step.mesh_dims = {{0, 1, ranks}};
  if (!from->partial.empty()) step.reduce_op = ReduceOp::sum;
  step.state = *to;
  return price_step({&topology, &*mesh, &*mesh, &tensor, std::nullopt, &*from, &step});
}

TEST_CASE("padded buffers and copies of large boxes") {
  Topology topology = uniform_topology();
  topology.copy_mb_per_s = 1;
  const TensorMeta tensor{{int64_t{1} << 30, int64_t{1} << 30}, DType::float32};  // 2^62 bytes
  for (const auto& [before, op, after] : {std::tuple{"S(1)", Op::all_gather, "R"}, std::tuple{"P(sum)", Op::reduce_scatter, "S(1)"},
                                          std::tuple{"S(1)", Op::all_to_all, "S(0)"}, std::tuple{"P(sum)", Op::all_reduce, "R"}}) {
    CAPTURE(before);
    CAPTURE(after);
    for (const int64_t ranks : {int64_t{2}, int64_t{1} << 20}) {
      const StepCost cost = price(topology, ranks, tensor, before, op, after);
      CHECK(cost.wire_bytes > 0);
      CHECK(cost.peak_bytes > 0);
      CHECK(cost.peak_bytes >= cost.wire_bytes);
      CHECK(cost.predicted_ps > INT64_MAX / 2);
    }
  }
}

TEST_CASE("an all_reduce over more ranks than its bytes times them fit") {
  const int64_t ranks = int64_t{1} << 40;
  const int64_t bytes = ranks - 4;
  const StepCost cost = price(uniform_topology(), ranks, {{bytes / 4}, DType::float32}, "P(sum)", Op::all_reduce, "R");
  CHECK(cost.wire_bytes == 2 * bytes - 1);  // ceil(2 (g - 1) bytes / g), which is 2 bytes - 2 + 8 / g
}

TEST_CASE("NCCL's latency of a ring round all ranks that there can be") {
  Topology topology = uniform_topology();
  topology.model = "nccl";
  const StepCost cost = price(topology, int64_t{1} << 61, {{64}, DType::float32}, "P(sum)", Op::all_reduce, "R");
  CHECK(cost.tier == "nccl");
  CHECK(cost.predicted_ps == INT64_MAX);
}

}  // namespace
}  // namespace meshplan
