#include "cost/calibrate.h"

#include <doctest/doctest.h>

#include "cost/step_cost.h"
#include "cost/topology.h"
#include "mesh/mesh.h"

using namespace meshplan;

namespace {

// What a machine of 8 us latency and 20 GB/s takes for an all_reduce of n ranks, with some noise that repeats.
int64_t true_ns(int64_t bytes, int64_t n) { return 8000 + bytes * 2 * (n - 1) / n / 20; }

int64_t predicted_ns(const Topology& topology, int64_t bytes, int64_t n) {
  auto mesh = make_mesh("mesh", {{"a", n}});
  REQUIRE(mesh.ok());
  const TensorMeta tensor{{bytes / 4}, DType::float32};
  State before;
  before.shards.resize(1);
  before.partial = {{{0, 1, n}, ReduceOp::sum}};
  Step step;
  step.op = Op::all_reduce;
  step.mesh_dims = {{0, 1, n}};
  step.reduce_op = ReduceOp::sum;
  step.state.shards.resize(1);
  return ns_of_ps(price_step({&topology, &*mesh, &*mesh, &tensor, std::nullopt, &before, &step}).predicted_ps);
}

}  // namespace

TEST_CASE("planning with a calibrated topology reproduces what was measured, and held-back sizes nearly") {
  const Topology base = uniform_topology();
  std::vector<CalibrationPoint> points;
  for (int64_t bytes = 1024; bytes <= 64 << 20; bytes *= 4) points.push_back({Op::all_reduce, 0, 4, bytes, true_ns(bytes, 4), 20});
  auto fitted = calibrate(base, points);
  REQUIRE(fitted.ok());
  REQUIRE(fitted->tables.size() == 1);
  for (const CalibrationPoint& p : points) {
    const double ratio = static_cast<double>(predicted_ns(*fitted, p.size_bytes, 4)) / static_cast<double>(p.ns);
    CHECK(ratio == doctest::Approx(1).epsilon(0.01));
  }
  for (int64_t bytes = 2048; bytes <= 32 << 20; bytes *= 4) {
    const double ratio = static_cast<double>(predicted_ns(*fitted, bytes, 4)) / static_cast<double>(true_ns(bytes, 4));
    CHECK(ratio > 0.75);
    CHECK(ratio < 1.25);
  }
  // Groups of another size go by the fitted level.
  CHECK(fitted->levels[0].mb_per_s == doctest::Approx(20000).epsilon(0.01));
  CHECK(fitted->levels[0].latency_ns == doctest::Approx(8000).epsilon(0.01));
  CHECK(check_topology(*fitted).ok());
}

TEST_CASE("noise that would make more bytes cheaper is pooled") {
  const std::vector<CalibrationPoint> points{{Op::all_gather, 0, 2, 100, 900, 10},
                                             {Op::all_gather, 0, 2, 200, 700, 10},
                                             {Op::all_gather, 0, 2, 400, 1000, 10},
                                             {Op::all_gather, 0, 2, 400, 1200, 10},
                                             {Op::all_gather, 0, 2, 400, 1100, 10}};
  auto fitted = calibrate(uniform_topology(), points);
  REQUIRE(fitted.ok());
  CHECK(fitted->tables[0].points == std::vector<std::pair<int64_t, int64_t>>{{100, 800}, {200, 800}, {400, 1100}});
}

TEST_CASE("a level is fitted near most of its exchanges, whatever a few of them say") {
  Topology base = uniform_topology();
  base.levels[0].per_peer_ns = 0;
  std::vector<CalibrationPoint> points;
  for (int64_t bytes = 1000; bytes <= 64'000'000; bytes *= 2) points.push_back({Op::exchange, 0, 2, bytes, 5000 + bytes / 10, 10, 1});
  points[3].ns *= 4;
  points[8].ns /= 3;
  points[12].ns *= 2;
  auto fitted = calibrate(base, points);
  REQUIRE(fitted.ok());
  CHECK(fitted->levels[0].mb_per_s == 10000);
  CHECK(fitted->levels[0].latency_ns == 5000);
  // Time that does not grow says nothing about bandwidth.
  points = {{Op::exchange, 0, 2, 1000, 900, 10, 1}, {Op::exchange, 0, 2, 2000, 900, 10, 1}, {Op::exchange, 0, 2, 4000, 800, 10, 1}};
  auto flat = calibrate(base, points);
  REQUIRE(flat.ok());
  CHECK(flat->levels[0].mb_per_s == base.levels[0].mb_per_s);
  CHECK(flat->levels[0].latency_ns == base.levels[0].latency_ns);
}

TEST_CASE("exchanges fit their level, local steps and single ranks fit nothing") {
  Topology base = uniform_topology();
  base.levels[0].per_peer_ns = 100;
  std::vector<CalibrationPoint> points{{Op::slice, -1, 1, 100, 5, 10}};
  CHECK_FALSE(calibrate(base, points).ok());
  for (int64_t bytes : {1000, 5000, 90000}) points.push_back({Op::exchange, 0, 4, bytes, 2000 + bytes / 4, 10});
  auto fitted = calibrate(base, points);
  REQUIRE(fitted.ok());
  CHECK(fitted->tables.empty());
  CHECK(fitted->levels[0].mb_per_s == 4000);
  CHECK(fitted->levels[0].latency_ns == 1700);
  // As many peers as the prediction counts, which differ from exchange to exchange.
  std::vector<CalibrationPoint> few;
  for (int64_t peers : {1, 2, 3}) few.push_back({Op::exchange, 0, 4, 4000 * peers, 2000 + 1000 * peers + 100 * peers, 10, peers});
  auto counted = calibrate(base, few);
  REQUIRE(counted.ok());
  CHECK(counted->levels[0].mb_per_s == 4000);
  CHECK(counted->levels[0].latency_ns == 2000);
  CHECK(counted->levels[0].per_peer_ns == 100);
  // Faster than its peers are said to be: they cost less.
  base.levels[0].per_peer_ns = 900;
  few = {{Op::exchange, 0, 4, 1000, 650, 10, 3}, {Op::exchange, 0, 4, 5000, 1650, 10, 3}};
  auto quick = calibrate(base, few);
  REQUIRE(quick.ok());
  CHECK(quick->levels[0].per_peer_ns == 216);
  CHECK(quick->levels[0].mb_per_s == 4000);
  CHECK(quick->levels[0].latency_ns == 0);
  points.push_back({Op::all_reduce, 3, 4, 100, 100, 1});
  auto beyond = calibrate(base, points);
  REQUIRE_FALSE(beyond.ok());
  CHECK(beyond.error().message.find("uses level 3") != std::string::npos);
}
