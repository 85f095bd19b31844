// Fits of known machines, held-out sizes, laws of the result, and what is refused.
#include "cost/calibrate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cost/bounds.h"
#include "cost/collective_time.h"
#include "cost/protocols.h"
#include "cost/seed_protocols.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "small_mesh.h"
#include "verify/random_world.h"

using namespace meshplan;

namespace {

// From `first` to below `end`, each `step` times the one before.
std::vector<double> sizes(double first, double end, double step) {
  std::vector<double> list{first};
  while (list.back() * step < end) list.push_back(list.back() * step);
  return list;
}

MeasuredRow row_of_size(Op op, int64_t ranks, int64_t bytes, double ns) {
  MeasuredRow row{"r.json", op, {ranks}, bytes, std::llround(ns), 20, {}};
  if (op == Op::exchange) {
    row.traffic.bytes[0] = bytes;
    row.traffic.peers[0] = ranks - 1;
  }
  return row;
}

// A library that sends small messages eagerly, larger ones after a handshake, and slows down where
// caches end: each op otherwise, with a little noise.
double library_ns(Op op, int64_t ranks, double bytes, test::Random& random) {
  const double hops = static_cast<double>(ranks - 1);
  const double weight = op == Op::all_reduce ? 2 : op == Op::exchange ? 0.8 : 1;
  const double eager = bytes <= 16'384 ? 1'500 : 9'000;
  const double cached = bytes / 12 + std::max(0.0, bytes - 600'000) / 5;
  const double noise = 0.97 + 0.06 * static_cast<double>(random.below(1'000)) / 1'000;
  return noise * weight * (hops * eager + cached);
}

std::vector<MeasuredRow> library_rows(int64_t ranks, uint64_t seed) {
  test::Random random(seed);
  std::vector<MeasuredRow> rows;
  for (const Op op : {Op::all_gather, Op::reduce_scatter, Op::all_reduce, Op::all_to_all, Op::exchange}) {
    for (int64_t bytes = 4'096; bytes <= 16 << 20; bytes *= 2) {
      rows.push_back(row_of_size(op, ranks, bytes, library_ns(op, ranks, static_cast<double>(bytes), random)));
      const int64_t between = bytes * 3 / 2;
      rows.push_back(row_of_size(op, ranks, between, library_ns(op, ranks, static_cast<double>(between), random)));
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("a fit predicts what was measured and, nearly, the sizes held out") {
  for (const int64_t ranks : {2, 4, 12}) {
    CAPTURE(ranks);
    const auto fitted = calibrate(uniform_topology(), library_rows(ranks, 7));
    REQUIRE(fitted.ok());
    CHECK(fitted->all.rows == 5 * 26);
    CHECK(fitted->all.median < 1.03);
    CHECK(fitted->all.largest < 1.4);
    CHECK(fitted->held_out.rows == 5 * 12);
    CHECK(fitted->held_out.median < 1.05);
    // Between 16 and 24 KiB nothing says where the handshake begins.
    for (const CalibratedRow& row : fitted->rows) {
      if (row.held_out_ns && (row.row.size_bytes < 12'000 || row.row.size_bytes > 25'000))
        CHECK(factor_of(*row.held_out_ns, row.row) < 1.4);
    }
    CHECK(fitted->topology.tables.empty());
    CHECK(check_topology(fitted->topology).ok());
    CHECK_FALSE(unserved_op(fitted->topology.protocols).has_value());
    // The same rows in another order give the same numbers.
    std::vector<MeasuredRow> turned = library_rows(ranks, 7);
    std::reverse(turned.begin(), turned.end());
    CHECK(calibrate(uniform_topology(), turned)->topology == fitted->topology);
  }
}

TEST_CASE("times that a log rounds to nothing fit a topology that is read again") {
  for (const Op op : {Op::all_reduce, Op::exchange}) {
    const auto fitted = calibrate(uniform_topology(), {row_of_size(op, 4, int64_t{1} << 50, 1)});
    REQUIRE(fitted.ok());
    CHECK(check_topology(fitted->topology).ok());
  }
}

TEST_CASE("a fit of a very slow machine has shares that a spec may have") {
  Topology base = uniform_topology();
  base.protocols = nccl_protocols(1);
  std::vector<MeasuredRow> rows;
  for (const Op op : {Op::all_gather, Op::all_reduce}) {
    for (int64_t bytes = 1 << 10; bytes <= 1 << 20; bytes *= 4)
      rows.push_back(row_of_size(op, 4, bytes, 1'000'000 + 9'000 * static_cast<double>(bytes)));
  }
  for (const Topology& one : {uniform_topology(), base}) {
    const auto fitted = calibrate(one, rows);
    REQUIRE(fitted.ok());
    const Status checked = check_topology(fitted->topology);
    CHECK_MESSAGE(checked.ok(), (checked.ok() ? "" : checked.error().message));
  }
}

TEST_CASE("sizes that are held out stay out of the fit that predicts them") {
  std::vector<MeasuredRow> rows;
  for (int64_t bytes = 1 << 20; bytes <= 1 << 26; bytes *= 2)
    rows.push_back(row_of_size(Op::all_gather, 4, bytes, 5'000 + static_cast<double>(bytes) / 10));
  rows[3].ns *= 4;
  const auto fitted = calibrate(uniform_topology(), rows);
  REQUIRE(fitted.ok());
  CHECK(fitted->held_out.rows == 3);
  for (size_t i = 0; i < rows.size(); ++i) CHECK(fitted->rows[i].held_out_ns.has_value() == (i == 1 || i == 3 || i == 5));
  CHECK(fitted->held_out.largest == doctest::Approx(4).epsilon(0.05));
  // Two sizes: none to hold out.
  rows.resize(2);
  CHECK(calibrate(uniform_topology(), rows)->held_out.rows == 0);
}

TEST_CASE("numbers of a machine with protocols come back from what they predict") {
  Topology truth = test::two_levels(8, 500);
  truth.protocols = {{"small", 6'000, false, 0, {{1'000, 1'200}, {3'000, 1'500}}},
                     {"large", 9'000, true, 0, {{3'000, 10'000, 3'000, 9'000}, {12'000, 10'000, 14'000, 8'000}}}};
  std::vector<MeasuredRow> rows;
  for (const Op op : {Op::all_gather, Op::reduce_scatter, Op::all_reduce, Op::all_to_all}) {
    for (const std::vector<int64_t>& members : {std::vector<int64_t>{8, 8}, {1, 16}, {8, 64}}) {
      for (int64_t bytes = 1 << 14; bytes <= 1 << 30; bytes *= 4) {
        MeasuredRow row{"log:1", op, members, bytes, 1, 20, {}};
        row.ns = predicted_ns(truth, row);
        rows.push_back(row);
      }
    }
  }
  Topology start = truth;
  start.levels[0].mb_per_s = 250'000;
  start.levels[1].mb_per_s = 70'000;
  start.protocols[1].levels[1].hop_ns = 5'000;
  start.protocols[0].base_ns = 20'000;
  CHECK(compare_rows(start, rows)->all.mean > 1.15);
  const auto fitted = calibrate(start, rows);
  REQUIRE(fitted.ok());
  CHECK(fitted->all.mean < 1.01);
  CHECK(fitted->held_out.mean < 1.02);
  CHECK(fitted->topology.protocols.size() == 2);
  CHECK(fitted->topology.levels[1].mb_per_s == doctest::Approx(45'000).epsilon(0.03));
}

TEST_CASE("after calibration more bytes never take less, and no bound exceeds a prediction") {
  const Topology fitted = calibrate(uniform_topology(), library_rows(8, 3))->topology;
  test::Random random(4);
  for (int i = 0; i < 2'000; ++i) {
    const Op op = random.pick(std::vector<Op>{Op::all_gather, Op::reduce_scatter, Op::all_reduce, Op::all_to_all, Op::exchange});
    const int64_t bytes = 1 + random.below(1 << 24);
    const MeasuredRow row = row_of_size(op, 8, bytes, 1);
    CHECK(predicted_ns(fitted, row_of_size(op, 8, bytes + random.below(1 << 20), 1)) >= predicted_ns(fitted, row));
  }
  // Bounds of what an op does to a tensor on 8 ranks are above nothing and below its price.
  struct Story {
    Op op;
    const char* src;
    const char* dst;
  };
  double tightest = 0;
  for (const Story& story : {Story{Op::all_gather, "S(0)", "R"},
                             {Op::all_reduce, "P(sum)", "R"},
                             {Op::reduce_scatter, "P(sum)", "S(0)"},
                             {Op::all_to_all, "S(0)", "S(1)"}}) {
    for (int64_t rows = 8; rows <= 1 << 15; rows *= 8) {
      CAPTURE(story.src);
      CAPTURE(rows);
      const Mesh mesh = test::mesh_of({8});
      const TensorMeta tensor{{rows, 64}, DType::float32};
      const std::vector<int64_t> sizes{8};
      const State before = parse_state(story.src, sizes, 2).value();
      Step step;
      step.op = story.op;
      step.mesh_dims = {{0, 1, 8}};
      if (row_of(story.op).reduces) step.reduce_op = ReduceOp::sum;
      step.state = parse_state(story.dst, sizes, 2).value();
      const StepCost cost = price_step({&fitted, &mesh, &mesh, &tensor, std::nullopt, &before, &step});
      const LevelMap levels(mesh, fitted);
      const Bounds bounds = lower_bounds(levels, tensor.shape, 4, 4, before, step.state);
      CHECK(bounds.ps > 0);
      CHECK(bounds.ps <= cost.predicted_ps);
      tightest = std::max(tightest, static_cast<double>(bounds.ps) / static_cast<double>(cost.predicted_ps));
    }
  }
  CHECK(tightest > 0.3);
}

TEST_CASE("ops that were not measured take protocols of one that was") {
  std::vector<MeasuredRow> rows = library_rows(4, 1);
  std::erase_if(rows, [](const MeasuredRow& row) { return row.op != Op::reduce_scatter; });
  const auto fitted = calibrate(uniform_topology(), rows);
  REQUIRE(fitted.ok());
  CHECK_FALSE(unserved_op(fitted->topology.protocols).has_value());
  const MeasuredRow reduce = row_of_size(Op::all_reduce, 4, 1 << 22, 1);
  const MeasuredRow scatter = row_of_size(Op::reduce_scatter, 4, 1 << 22, 1);
  CHECK(predicted_ns(fitted->topology, reduce) >= predicted_ns(fitted->topology, scatter));
  // Exchanges alone: the model of levels.
  rows = library_rows(4, 1);
  std::erase_if(rows, [](const MeasuredRow& row) { return row.op != Op::exchange; });
  const auto levels = calibrate(uniform_topology(), rows);
  REQUIRE(levels.ok());
  CHECK(levels->topology.protocols.empty());
}

TEST_CASE("a level that nothing was measured over keeps the numbers of the base") {
  const Topology base = test::two_levels(8, 20'000);
  REQUIRE(base.protocols.empty());
  for (const size_t idle : {size_t{1}, size_t{0}}) {
    CAPTURE(idle);
    std::vector<MeasuredRow> rows = library_rows(4, 9);
    for (MeasuredRow& row : rows) {
      row.members = idle == 1 ? std::vector<int64_t>{4, 4} : std::vector<int64_t>{1, 4};
      if (idle == 0) {
        std::swap(row.traffic.bytes[0], row.traffic.bytes[1]);
        std::swap(row.traffic.peers[0], row.traffic.peers[1]);
      }
    }
    const auto fitted = calibrate(base, rows);
    REQUIRE(fitted.ok());
    CHECK(fitted->all.median < 1.05);
    CHECK(fitted->topology.levels[idle] == base.levels[idle]);
    CHECK_FALSE(fitted->topology.levels[1 - idle] == base.levels[1 - idle]);
    REQUIRE(!fitted->topology.protocols.empty());
    for (const Protocol& protocol : fitted->topology.protocols) {
      CHECK(protocol.levels[idle].hop_ns == base.levels[idle].latency_ns);
      CHECK(protocol.levels[idle].share == whole_share);
    }
    CHECK(check_topology(fitted->topology).ok());
  }
}

TEST_CASE("exchanges with few peers do not make all_to_alls too dear") {
  // 2 peers 15 us, 7 peers 26: of one curve alone start and hop of exchanges cannot be told apart.
  test::Random random(11);
  std::vector<MeasuredRow> rows;
  for (int64_t bytes = 512; bytes <= 1 << 22; bytes *= 2) {
    const auto moved = static_cast<double>(bytes);
    const double noise = 0.98 + 0.04 * static_cast<double>(random.below(1'000)) / 1'000;
    const double jump = bytes <= 8'192 ? 0 : bytes <= 262'144 ? 9'000 : 100'000;
    rows.push_back(row_of_size(Op::all_reduce, 8, bytes, noise * (30'000 + jump + moved)));
    rows.push_back(row_of_size(Op::all_to_all, 8, bytes, noise * (10'600 + 7 * 2'200 + jump + moved / 2)));
    MeasuredRow exchange = row_of_size(Op::exchange, 8, bytes, noise * (10'600 + 2 * 2'200 + jump + moved / 2));
    exchange.traffic.peers[0] = 2;
    rows.push_back(exchange);
  }
  const auto fitted = calibrate(uniform_topology(), rows);
  REQUIRE(fitted.ok());
  CHECK(fitted->all.largest < 1.1);
}

TEST_CASE("a straight line has no jumps, however far apart its sizes are") {
  for (const double step : {1.5, 2.0, 4.0, 8.0, 16.0}) {
    CAPTURE(step);
    std::vector<CurvePoint> points;
    for (const double bytes : sizes(1'024, 2e10, step)) points.push_back({bytes, 20'000 + bytes / 90, std::llround(bytes)});
    const std::vector<CurvePiece> pieces = cut_curve(points, 4);
    CHECK(pieces.size() == 1);
    const CurvePiece& all = pieces.back();
    for (const double bytes : sizes(1'500, 1e10, 1.7)) CHECK(time_of(all, bytes) == doctest::Approx(20'000 + bytes / 90).epsilon(0.02));
  }
  // Sizes in between are told right where another op is faster over the level.
  std::vector<MeasuredRow> rows;
  std::vector<MeasuredRow> between;
  for (int power = 10; power <= 34; ++power) {
    const int64_t bytes = int64_t{1} << power;
    const auto moved = static_cast<double>(bytes);
    std::vector<MeasuredRow>& to = power % 3 == 1 ? rows : between;
    to.push_back(row_of_size(Op::all_gather, 4, bytes, 20'000 + moved / 120));
    to.push_back(row_of_size(Op::all_reduce, 4, bytes, 20'000 + moved / 150));
  }
  const auto fitted = calibrate(uniform_topology(), rows);
  REQUIRE(fitted.ok());
  const auto compared = compare_rows(fitted->topology, between);
  REQUIRE(compared.ok());
  CHECK(compared->all.largest < 1.05);
}

TEST_CASE("a curve is cut where it jumps and bends where it grows steeper") {
  std::vector<CurvePoint> points;
  for (const double bytes : sizes(1'000, 3e7, 1.5)) {
    const double ns = (bytes < 50'000 ? 2'000 : 20'000) + std::max(bytes / 10, (bytes - 1e6) / 3);
    points.push_back({bytes, ns, std::llround(bytes)});
  }
  const std::vector<CurvePiece> pieces = cut_curve(points, 4);
  REQUIRE(pieces.size() == 3);
  const auto above = std::find_if(points.begin(), points.end(), [](const CurvePoint& p) { return p.bytes >= 50'000; });
  const CurvePoint& below = *std::prev(above);
  CHECK(pieces[0].most_size == below.size);
  CHECK(pieces[1].most_size == above->size - 1);
  CHECK(pieces[0].start_ns == doctest::Approx(2'000).epsilon(0.05));
  CHECK(pieces[2].near == doctest::Approx(1e6).epsilon(0.2));
  CHECK(pieces[2].most_size == 0);
  const auto time_at = [&](double bytes) {
    double least = 1e300;
    for (const CurvePiece& piece : pieces) {
      if (piece.most_size == 0 || std::llround(bytes) <= piece.most_size) least = std::min(least, time_of(piece, bytes));
    }
    return least;
  };
  for (const CurvePoint& p : points) CHECK(time_at(p.bytes) == doctest::Approx(p.ns).epsilon(0.12));
  // No row says where in the gap the jump is: the error is its root at most, wherever it is.
  const double middle = (below.bytes + above->bytes) / 2;
  const double low = 2'000 + middle / 10;
  const double high = 20'000 + middle / 10;
  CHECK(time_at(middle) / low == doctest::Approx(std::sqrt(high / low)).epsilon(0.05));
  CHECK(high / time_at(middle) == doctest::Approx(std::sqrt(high / low)).epsilon(0.05));
  // The smallest size alone below a jump is all latency.
  const std::vector<CurvePiece> two =
      cut_curve({{4'096, 1'000, 4'096}, {8'192, 4'000, 8'192}, {16'384, 4'400, 16'384}, {32'768, 5'200, 32'768}}, 4);
  REQUIRE(two.size() == 3);
  CHECK(two[0].start_ns == 1'000);
  CHECK(time_of(two[1], 6'144) == doctest::Approx(std::sqrt(1'000 * 3'900)).epsilon(0.05));
  CHECK(cut_curve({}, 4).empty());
  CHECK(cut_curve({{5, 7, 5}}, 4).size() == 1);
}

TEST_CASE("what cannot be used is refused by place") {
  const auto message = [](const Topology& base, const std::vector<MeasuredRow>& rows) {
    const auto fitted = calibrate(base, rows);
    REQUIRE_FALSE(fitted.ok());
    return fitted.error().message;
  };
  CHECK(message(uniform_topology(), {}).find("nothing that communicates") != std::string::npos);
  CHECK(message(uniform_topology(), {row_of_size(Op::slice, 4, 100, 5)}).rfind("r.json: nothing", 0) == 0);
  CHECK(message(uniform_topology(), {row_of_size(Op::all_reduce, 1, 100, 5)}).rfind("r.json: nothing", 0) == 0);
  CHECK(message(test::two_levels(8, 0), {row_of_size(Op::all_reduce, 4, 100, 5)}).find("over 1 levels, and the topology has 2") !=
        std::string::npos);
}
