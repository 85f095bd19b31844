// Steps whose sizes come near the end of 64 bits: what is above it is held there, so that more
// never looks like less.
#include "cost/step_cost.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/step_figures.h"
#include "cost/topology.h"
#include "mesh/mesh.h"
#include "small_mesh.h"

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

TEST_CASE("of a sum of which a part stays pending only the rest is received, however units cut the mesh") {
  // Oracle seed 4120301: planning ended with exit 70. Of 6 contributions each of 3 ranks sums, every second one or three in a row.
  const TensorMeta tensor{{2, 13}, DType::int32};
  for (const int64_t host : {4, 3, 6}) {
    CAPTURE(host);
    CHECK(price(test::two_levels(host, 0), 6, tensor, "P(sum)", Op::exchange, "{P(sum):2,R:3}").wire_bytes == 2 * 104);
    CHECK(price(test::two_levels(host, 0), 6, tensor, "P(sum)", Op::exchange, "{R:2,P(sum):3}").wire_bytes == 104);
    CHECK(price(test::two_levels(host, 0), 6, tensor, "P(sum)", Op::exchange, "R").wire_bytes == 5 * 104);
  }
}

TEST_CASE("padded buffers and copies of large boxes") {
  Topology topology = uniform_topology();
  topology.copy_mb_per_s = 1;
  const TensorMeta tensor{{int64_t{1} << 30, int64_t{1} << 30}, DType::float32};  // 2^62 bytes
  struct Case {
    const char* before;
    Op op;
    const char* after;
  };
  for (const Case& c : {Case{"S(1)", Op::all_gather, "R"}, Case{"P(sum)", Op::reduce_scatter, "S(1)"}, Case{"S(1)", Op::all_to_all, "S(0)"},
                        Case{"P(sum)", Op::all_reduce, "R"}}) {
    CAPTURE(c.before);
    CAPTURE(c.after);
    for (const int64_t ranks : {int64_t{2}, int64_t{1} << 20}) {
      const StepCost cost = price(topology, ranks, tensor, c.before, c.op, c.after);
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
  // ceil(2 (g - 1) bytes / g), which is 2 bytes - 2 + 8 / g
  CHECK(cost.wire_bytes == 2 * bytes - 1);
}

TEST_CASE("boxes of two elements on so many ranks that they would be past the end together") {
  const int64_t ranks = int64_t{1} << 62;
  const StepCost cost = price(uniform_topology(), ranks, {{ranks + 1}, DType::int8}, "S(0)", Op::all_gather, "R");
  CHECK(cost.wire_bytes == 2 * (ranks - 1));
  CHECK(cost.peak_bytes == INT64_MAX);
}

TEST_CASE("NCCL's latency of a ring round all ranks that there can be") {
  Topology topology = uniform_topology();
  topology.protocols = nccl_protocols(1);
  const StepCost cost = price(topology, int64_t{1} << 61, {{64}, DType::float32}, "P(sum)", Op::all_reduce, "R");
  CHECK(cost.tier == "protocols");
  CHECK(cost.predicted_ps == INT64_MAX);
}

// Staging of a step on a mesh a 4 x b 2, in elements of one byte.
int64_t staging(const std::vector<int64_t>& shape, const std::string& before, Op op, const std::vector<SubAxis>& group,
                const std::string& after) {
  const Mesh mesh = test::mesh_of({4, 2});
  const Topology uniform = uniform_topology();
  const std::vector<int64_t> sizes{4, 2};
  const State from = parse_state(before, sizes, shape.size()).value();
  const State to = parse_state(after, sizes, shape.size()).value();
  int64_t ranks = 1;
  for (const SubAxis& sub_axis : group) ranks *= sub_axis.size;
  return step_figures(from, to, shape, LevelMap(mesh, uniform), op, ranks, 1).staging;
}

TEST_CASE("collectives pack where chunks do not lie one behind the other") {
  const SubAxis a{0, 1, 4};
  const SubAxis b{1, 1, 2};
  const SubAxis a_outer{0, 1, 2};
  const SubAxis a_inner{0, 2, 2};
  // A slice below what is reduced takes every second chunk; above it, half of the box.
  CHECK(staging({16, 3}, "P(sum)R", Op::reduce_scatter, {a}, "S(0)R") == 0);
  CHECK(staging({16, 3}, "P(sum)R", Op::reduce_scatter, {a}, "S(0)[1]S(0)[0]") == 0);
  CHECK(staging({16, 3}, "P(sum)R", Op::reduce_scatter, {a}, "S(0)[0]S(0)[1]") == 24);
  CHECK(staging({16, 3}, "P(sum)P(sum)", Op::reduce_scatter, {a, b}, "S(0)[0]S(0)[1]") == 0);
  CHECK(staging({16}, "{P(sum):2,R:2}R", Op::reduce_scatter, {a_outer}, "S(0)R") == 8);
  CHECK(staging({16}, "{R:2,P(sum):2}R", Op::reduce_scatter, {a_inner}, "S(0)R") == 0);
  CHECK(staging({4, 6}, "P(sum)R", Op::reduce_scatter, {a}, "S(0)S(1)") == 12);
  CHECK(staging({2, 24}, "RP(sum)", Op::reduce_scatter, {b}, "S(1)S(0)") == 12);
  CHECK(staging({16, 1}, "P(sum)S(1)", Op::reduce_scatter, {a}, "S(0)S(1)") == 0);
  // Several tensor dims at once: parts of rows one behind the other are the rows.
  CHECK(staging({4, 6}, "S(0)S(1)", Op::all_gather, {a, b}, "RR") == 0);
  CHECK(staging({8, 6}, "S(0)S(1)", Op::all_gather, {a, b}, "RR") == 48);
  CHECK(staging({4, 6, 2}, "S(0)S(2)", Op::all_gather, {a, b}, "RR") == 48);
  CHECK(staging({4, 7}, "S(0)S(1)", Op::all_gather, {a, b}, "RR") == 32);  // padded
  CHECK(staging({1, 2, 5}, "RS(1)", Op::all_gather, {b}, "RR") == 0);
  CHECK(staging({2, 2, 5}, "RS(1)", Op::all_gather, {b}, "RR") == 20);
}

TEST_CASE("half of a mesh dim of 4 cuts 2 elements into 2 and none: what is gathered is padded") {
  const Mesh mesh = test::mesh_of({4});
  const Topology topology = test::one_level(0, 0);
  const TensorMeta tensor{{2}, DType::float32};
  const std::vector<int64_t> sizes{4};
  const auto from = parse_state("{S(0):2,R:2}", sizes, 1);
  REQUIRE(from.ok());
  Step step;
  step.op = Op::all_gather;
  step.mesh_dims = {{0, 1, 2}};
  step.state = *parse_state("R", sizes, 1);
  const StepCost cost = price_step({&topology, &mesh, &mesh, &tensor, std::nullopt, &*from, &step});
  CHECK(cost.wire_bytes == 8);
  CHECK(cost.peak_bytes == 8 + 8 + 16);
}

TEST_CASE("a time is rounded up once: the slowest level and the copies together") {
  // 512/3 B at 10 MB/s and 85 B at 3,000: 17,066,666 2/3 + 28,333 1/3 ps.
  Topology topology = test::one_level(10, 0);
  topology.levels.front().mb_per_s = 10;
  topology.copy_mb_per_s = 3'000;
  Traffic traffic;
  traffic.bytes[0] = 512;
  traffic.denominator = 3;
  traffic.peers[0] = 1;
  CHECK(traffic_ps(topology, traffic, Peers::none, 85) == 10'000 + 17'095'000);

  std::mt19937_64 random(3);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  for (int k = 0; k < 10'000; ++k) {
    topology = test::two_levels(8, 0);
    topology.copy_mb_per_s = 1 + below(5'000);
    traffic.denominator = 1 + below(48);
    // The exact time is the larger of two fractions and a third, over one denominator.
    const int128 copied = below(100'000);
    int128 slowest = 0;
    const int128 all = int128{topology.copy_mb_per_s} * traffic.denominator;
    int128 both = 1;
    for (size_t l = 0; l < 2; ++l) {
      topology.levels[l].latency_ns = 7;
      topology.levels[l].mb_per_s = 1 + below(5'000);
      traffic.peers[l] = 1;
      traffic.bytes[l] = below(100'000);
      both *= topology.levels[l].mb_per_s;
    }
    for (size_t l = 0; l < 2; ++l)
      slowest = std::max(slowest, int128{traffic.bytes[l]} * 1'000'000 * (both / topology.levels[l].mb_per_s) * topology.copy_mb_per_s);
    const int128 exact = slowest + copied * 1'000'000 * both * traffic.denominator;
    const int128 of = all * both;
    REQUIRE(traffic_ps(topology, traffic, Peers::none, static_cast<int64_t>(copied)) ==
            7'000 + static_cast<int64_t>((exact + of - 1) / of));
  }
}

}  // namespace
}  // namespace meshplan
