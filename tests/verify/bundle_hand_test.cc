// Bundles whose figures are worked out here by hand, whole plans with bundles, and hostile ones.
#include <doctest/doctest.h>

#include <chrono>

#include "cost/topology.h"
#include "verify/bundle.h"
#include "verify/bundle_world.h"

namespace meshplan {
namespace {

using test::Random;

struct BundleStep {
  Op op = Op::exchange;
  std::string state;
  std::vector<int32_t> dims{};  // of a collective, mesh dims
};

// Meshes "train" on ranks 0, 1, ... and "serve" behind them.
struct HandBundle {
  HandBundle(const std::vector<int64_t>& train, const std::vector<int64_t>& serve) {
    plan.topology = uniform_topology();
    int64_t first = 0;
    for (const auto* sizes : {&train, &serve}) {
      std::vector<std::pair<std::string, int64_t>> dims;
      int64_t world = 1;
      for (const int64_t size : *sizes) {
        dims.emplace_back("d" + std::to_string(dims.size()), size);
        world *= size;
      }
      std::vector<int64_t> ranks;
      for (int64_t r = 0; r < world; ++r) ranks.push_back(first + r);
      first += world;
      REQUIRE(add_root(plan.meshes, sizes == &train ? "train" : "serve", world, ranks, dims).ok());
    }
    bundle.request.id = "sync";
  }

  // float32. Across from train to serve, or on serve where `src_mesh` is 1; the first step crosses.
  void add_member(const std::vector<int64_t>& shape, const std::string& src, const std::vector<BundleStep>& steps, int64_t count,
                  size_t src_mesh = 0) {
    PlannedRedistribution& r = plan.redistributions.emplace_back();
    r.request.id = "w" + std::to_string(plan.redistributions.size());
    r.request.src_mesh = src_mesh;
    r.request.dst_mesh = 1;
    r.request.count = count;
    r.request.tensor.shape = shape;
    const std::vector<int64_t> to = mesh_shape(plan.meshes.meshes[1]);
    r.request.src = *parse_state(src, mesh_shape(plan.meshes.meshes[src_mesh]), shape.size());
    for (const BundleStep& hand : steps) {
      Step& step = r.steps.own().emplace_back();
      step.op = hand.op;
      step.state = *parse_state(hand.state, to, shape.size());
      step.mesh = src_mesh == 0 ? "serve" : "";
      for (int32_t m = 0; m < static_cast<int32_t>(to.size()); ++m) {
        if (hand.op != Op::exchange && std::find(hand.dims.begin(), hand.dims.end(), m) == hand.dims.end()) continue;
        step.mesh_dims.push_back({m, 1, to[static_cast<size_t>(m)]});
      }
      step.group = hand.op == Op::exchange && src_mesh == 0 && &hand == &steps.front() ? "train+serve" : "serve";
    }
    r.dst = r.request.dst = r.steps.back().state;
    bundle.request.members.push_back(plan.redistributions.size() - 1);
    bundle.tensors += count;
  }

  // Figures in this order: wire, staging, messages, ps.
  void add_round(int64_t stream, const std::vector<size_t>& after, const std::vector<RoundPart>& parts,
                 const std::vector<int64_t>& figures) {
    BundleRound& round = bundle.rounds.emplace_back();
    const auto step_of = [&](const RoundPart& part) -> const Step& {
      return std::as_const(plan.redistributions[part.member].steps)[static_cast<size_t>(part.step)];
    };
    round.op = step_of(parts.front()).op;
    round.group = step_of(parts.front()).group;
    for (const RoundPart& part : parts) {
      if (step_of(part).group != round.group) round.group.clear();
    }
    round.stream = stream;
    round.after = after;
    round.parts = parts;
    round.wire_bytes = figures[0];
    round.staging_bytes = figures[1];
    round.messages = figures[2];
    round.predicted_ps = figures[3];
  }
  // The same; staging, peak, ps.
  void set_totals(int64_t staging, int64_t peak, int64_t ps) {
    BundleTotals& totals = bundle.totals;
    totals = {};
    totals.rounds = static_cast<int64_t>(bundle.rounds.size());
    for (const BundleRound& round : bundle.rounds) {
      totals.wire_bytes += round.wire_bytes;
      totals.messages += round.messages;
    }
    totals.staging_bytes = staging;
    totals.peak_bytes = peak;
    totals.predicted_ps = bundle.alone_ps = ps;
    bundle.proven_gap_ps = 1000 * ns_of_ps(ps);
  }

  // By verify and by the oracle.
  void check() const {
    const auto proven = verify_bundle(plan, bundle);
    CHECK_MESSAGE(proven.ok(), (proven ? std::string() : proven.error().message));
    CHECK(test::is_right(plan, bundle));
  }
  [[nodiscard]] std::string message() const {
    const auto proven = verify_bundle(plan, bundle);
    return proven ? "right" : proven.error().message;
  }

  Plan plan;
  PlannedBundle bundle;
};

void check_figures_are_counted(HandBundle& x) {
  for (BundleRound& round : x.bundle.rounds) {
    for (int64_t* figure : {&round.wire_bytes, &round.staging_bytes, &round.messages}) {
      for (const int64_t off : {-1, 1}) {
        *figure += off;
        CHECK(x.message() != "right");
        *figure -= off;
      }
    }
    round.predicted_ps += 1000;
    CHECK(x.message() != "right");
    round.predicted_ps -= 1000;
  }
  CHECK(x.message() == "right");
}

TEST_CASE("exchanges between two meshes, tensor by tensor into rounds") {
  // Ranks 0 1 hold halves of 16 B; ranks 2 3 want all of w1, halves of w2. 10 us, 500 ns a peer and
  // 10 ps a byte.
  HandBundle x({2}, {2});
  x.add_member({8}, "S(0)", {{Op::exchange, "R"}}, 4);
  x.add_member({8}, "S(0)", {{Op::exchange, "S(0)"}}, 1);
  // Rank 0 sends 3 x 16 B to each of 2 and 3; these receive 3 x 32 B from two.
  x.add_round(0, {}, {{0, 0, 0, 3, 0, 1}}, {96, 96, 2, 11'000'960});
  // Rank 2 receives 32 B and a half of w2, which rank 0 sends; rank 0 sends 3 x 16 B.
  x.add_round(0, {}, {{0, 0, 3, 4, 0, 1}, {1, 0, 0, 1, 0, 1}}, {48, 48, 2, 11'000'480});
  // Rank 2: 4 x 32 B + 16 B of targets, 96 B staged. Rank 0: 5 x 16 B and 96 B.
  x.set_totals(96, 240, 22'001'440);
  x.check();
  SUBCASE("limits") {
    x.bundle.request.max_staging_bytes = 96;
    x.bundle.request.max_messages = 2;
    CHECK(x.message() == "right");
    x.bundle.request.max_staging_bytes = 95;
    CHECK(x.message() == "bundle 'sync': its total of staging_bytes is 96, max_staging_bytes allows 95");
    x.bundle.request.max_messages = 1;
    CHECK(x.message() == "bundle 'sync': round 0: messages is 2, max_messages allows 1");
  }
  SUBCASE("messages") {
    x.bundle.rounds[1].parts[0].from = 2;
    CHECK(x.message() == "bundle 'sync': round 1: tensor 2 of 'w1', step 0, piece 0 runs in round 0 already");
    x.bundle.rounds[0].parts[0].to = 1;
    CHECK(x.message() == "bundle 'sync': tensor 1 of 'w1', step 0 runs in no round, expected each piece once");
    x.bundle.rounds[0].parts[0].to = 5;
    CHECK(x.message() == "bundle 'sync': round 0, part 0: it has tensors 0 to 5, expected some of 0 to 4");
  }
  SUBCASE("a far share") {
    x.plan.redistributions[1].steps.front().far_64ths = 32;
    CHECK(x.message() == "bundle 'sync': member 'w2', step 0: it has a far share, expected the nearest holders alone in a bundle");
  }
  SUBCASE("two phases") {
    x.plan.redistributions[1].steps.front().phases = 2;
    CHECK(x.message() == "bundle 'sync': round 1, part 1: step 0 of two phases goes in 1 pieces, expected an even number of them");
    x.plan.redistributions[1].steps.front().fetched_by_all = true;
    CHECK(x.message() == "bundle 'sync': member 'w2', step 0: it is fetched by all, expected those that want it in a bundle");
    x.plan.redistributions[1].steps.front().fetched_by_all = false;
    x.plan.redistributions[1].steps.front().laps = 2;
    CHECK(x.message() == "bundle 'sync': member 'w2', step 0: its laps are 2, expected 1 in a bundle");
    x.plan.redistributions[1].steps.front().laps = 1;
    x.plan.redistributions[1].steps.front().at_once = 2;
    CHECK(x.message() == "bundle 'sync': member 'w2', step 0: its at_once is 2, expected none in a bundle");
    x.plan.redistributions[1].steps.front().at_once = 0;
    x.plan.redistributions[1].steps.front().chunks = 2;
    CHECK(x.message() == "bundle 'sync': member 'w2', step 0: chunks is 2, expected 1 in a bundle");
  }
  SUBCASE("on two streams they share the links") {
    x.bundle.rounds[1].stream = 1;
    // Rank 2 receives 96 + 48 B in one wave, from 2 + 2 peers.
    x.set_totals(144, 288, 12'001'440);
    x.bundle.totals.wire_bytes = 144;
    x.bundle.totals.messages = 4;
    x.check();
  }
}

TEST_CASE("two phases behind a step in pieces share what is there while the rest crosses") {
  // Hosts of 2: 1 ns a byte across, a quarter of it inside. Ranks 0 and 1 give ranks 2 to 5 a quarter
  // of [32] each, half of it from either. Then each sends its quarter to its neighbour and to one
  // rank of the other host, which passes it on.
  HandBundle x({2}, {4});
  x.plan.topology.levels = {{"host", 2, 4'000, 0, 0}, {"all", 1'048'576, 1'000, 0, 0}};
  x.add_member({32}, "R", {{Op::exchange, "S(0)"}, {Op::exchange, "R"}}, 1);
  x.plan.redistributions[0].steps.back().phases = 2;
  // Rank 0 sends 8 B to each of 4, then the same again.
  x.add_round(0, {}, {{0, 0, 0, 1, 0, 2}}, {16, 32, 4, 32'000});
  x.add_round(0, {}, {{0, 0, 0, 1, 1, 2}}, {16, 32, 4, 32'000});
  // Every rank of serve has 16 B for its neighbour, and as much for the other host.
  x.add_round(1, {0}, {{0, 1, 0, 1, 0, 4}}, {32, 64, 4, 16'000});
  x.add_round(1, {1}, {{0, 1, 0, 1, 2, 4}}, {32, 64, 4, 16'000});
  x.add_round(2, {2}, {{0, 1, 0, 1, 1, 4}}, {16, 32, 2, 4'000});
  x.add_round(2, {3}, {{0, 1, 0, 1, 3, 4}}, {16, 32, 2, 4'000});
  // Waves 0 | 1 2 | 3 4 | 5: 32 ns; 16 + 16 B into a rank across; 16 B of round 3; 4 ns. In wave 2
  // a rank has 64 + 32 B of messages beside its 32 B between the steps and its target of 128.
  x.set_totals(128, 256, 84'000);
  CHECK(x.message() == "right");
  SUBCASE("a piece before its own of the step before") {
    std::swap(x.bundle.rounds[2].parts, x.bundle.rounds[3].parts);
    CHECK(x.message() ==
          "bundle 'sync': round 2: tensor 0 of 'w1', step 1 runs in wave 1, what it needs of step 0 in wave 1, expected an earlier one");
  }
  SUBCASE("passed on before it is fetched") {
    std::swap(x.bundle.rounds[4].parts, x.bundle.rounds[5].parts);
    CHECK(x.message() ==
          "bundle 'sync': round 4: tensor 0 of 'w1', step 1 runs in wave 2, what it needs of step 1 in wave 2, expected an earlier one");
  }
  SUBCASE("in another number of pieces it needs all of the step before") {
    x.bundle.rounds.resize(2);
    x.add_round(1, {0}, {{0, 1, 0, 1, 0, 2}}, {64, 128, 4, 32'000});
    x.add_round(2, {2}, {{0, 1, 0, 1, 1, 2}}, {32, 64, 2, 8'000});
    CHECK(x.message() ==
          "bundle 'sync': round 2: tensor 0 of 'w1', step 1 runs in wave 1, what it needs of step 0 in wave 1, expected an earlier one");
    x.bundle.rounds[2].after = {1};
    x.set_totals(160, 288, 104'000);
    CHECK(x.message() == "right");
  }
  SUBCASE("figures of either are counted") { check_figures_are_counted(x); }
}

TEST_CASE("of two phases what is fetched goes first, then what is passed on") {
  // Hosts of 2: 1 ns a byte across, a quarter of it inside. Ranks 2 and 3 fetch a half of [8] each
  // for their host, rank 4 all of it.
  HandBundle x({2}, {3});
  x.plan.topology.levels = {{"host", 2, 4'000, 0, 0}, {"all", 1'048'576, 1'000, 0, 0}};
  x.add_member({8}, "S(0)", {{Op::exchange, "R"}}, 1);
  x.plan.redistributions[0].steps.front().phases = 2;
  x.add_round(0, {}, {{0, 0, 0, 1, 0, 2}}, {32, 32, 2, 32'000});
  x.add_round(0, {}, {{0, 0, 0, 1, 1, 2}}, {16, 32, 2, 4'000});
  // Rank 4 has 32 B of messages beside its target, rank 2 at last as many.
  x.set_totals(32, 64, 36'000);
  CHECK(x.message() == "right");
  SUBCASE("in pieces") {
    x.bundle.rounds.clear();
    x.add_round(0, {}, {{0, 0, 0, 1, 0, 4}}, {16, 16, 2, 16'000});
    x.add_round(0, {}, {{0, 0, 0, 1, 2, 4}}, {16, 16, 2, 16'000});
    x.add_round(1, {0}, {{0, 0, 0, 1, 1, 4}}, {8, 16, 2, 2'000});
    x.add_round(1, {1}, {{0, 0, 0, 1, 3, 4}}, {8, 16, 2, 2'000});
    // Round 2 is beside round 1: rank 2 fetches 8 B, sends 8 and receives 8.
    x.set_totals(24, 56, 34'000);
    CHECK(x.message() == "right");
    x.bundle.rounds[2].parts[0].piece = 3;
    x.bundle.rounds[3].parts[0].piece = 1;
    CHECK(x.message() ==
          "bundle 'sync': round 2: tensor 0 of 'w1', step 0 runs in wave 1, what it needs of step 0 in wave 1, expected an earlier one");
  }
  SUBCASE("in the other order") {
    std::swap(x.bundle.rounds[0].parts, x.bundle.rounds[1].parts);
    CHECK(x.message() ==
          "bundle 'sync': round 0: tensor 0 of 'w1', step 0 runs in wave 0, what it needs of step 0 in wave 1, expected an earlier one");
  }
  SUBCASE("at the same time") {
    x.bundle.rounds[1].stream = 1;
    CHECK(x.message() ==
          "bundle 'sync': round 1: tensor 0 of 'w1', step 0 runs in wave 0, what it needs of step 0 in wave 0, expected an earlier one");
  }
  SUBCASE("the second phase never") {
    x.bundle.rounds.pop_back();
    CHECK(x.message() == "bundle 'sync': tensor 0 of 'w1', step 0 runs in 1 pieces of 2");
  }
  SUBCASE("in three pieces") {
    for (BundleRound& round : x.bundle.rounds) round.parts[0].pieces = 3;
    CHECK(x.message() == "bundle 'sync': round 0, part 0: step 0 of two phases goes in 3 pieces, expected an even number of them");
  }
  SUBCASE("figures of either are counted") { check_figures_are_counted(x); }
}

TEST_CASE("one bucket is shared while the next is fetched") {
  // Hosts of 2: 1 us and 1 ns a byte inside, 5 us and 10 ns a byte across.
  HandBundle x({2}, {2});
  x.plan.topology.levels = {{"host", 2, 1'000, 1'000, 0}, {"all", 1'048'576, 100, 5'000, 0}};
  // Rank 2 fetches [0:4] of 16 B, rank 3 [4:8]; then each sends the other its half.
  x.add_member({8}, "S(0)", {{Op::exchange, "S(0)"}, {Op::exchange, "R"}}, 1);
  const auto piece = [](int64_t step, int64_t i) { return RoundPart{0, step, 0, 1, i, 2}; };
  x.add_round(0, {}, {piece(0, 0)}, {8, 8, 1, 5'080'000});
  x.add_round(0, {}, {piece(0, 1)}, {8, 8, 1, 5'080'000});
  x.add_round(1, {0}, {piece(1, 0)}, {8, 16, 2, 1'008'000});
  x.add_round(1, {1}, {piece(1, 1)}, {8, 16, 2, 1'008'000});
  // Waves 0, 1, 1, 2. In wave 1 rank 2 has 8 B of fetched, 8 + 8 B of shared, and the box of 16 B
  // between the steps; beside that its target of 32 B.
  x.set_totals(40, 72, 2 * 5'080'000 + 1'008'000);
  x.check();
  SUBCASE("at once") {
    x.bundle.rounds[2].after = {};
    CHECK(x.message() ==
          "bundle 'sync': round 2: tensor 0 of 'w1', step 1 runs in wave 0, what it needs of step 0 in wave 0, expected an earlier one");
  }
  SUBCASE("in a later wave by chance") {
    x.bundle.rounds[3].after = {};
    CHECK(
        x.message() ==
        "bundle 'sync': round 3: tensor 0 of 'w1', step 1 needs step 0 of round 1, which it does not wait for: expected that \"after\" and "
        "streams lead there");
    CHECK(!test::is_right(x.plan, x.bundle));
  }
}

TEST_CASE("uneven extents go in pieces, some of them empty") {
  // [5] on two ranks: 3 and 2 elements. In 4 pieces of 1 1 1 0 and 1 1 0 0.
  HandBundle x({2}, {1});
  x.add_member({5}, "S(0)", {{Op::exchange, "R"}}, 2);
  for (int64_t i = 0; i < 4; ++i) {
    // Rank 2 receives from both, from rank 0 alone, from none.
    const int64_t bytes = i < 2 ? 16 : i == 2 ? 8 : 0;
    const int64_t peers = i < 2 ? 2 : i == 2 ? 1 : 0;
    const int64_t ps = peers == 0 ? 0 : 10'000'000 + peers * 500'000 + bytes * 10;
    x.add_round(0, {}, {{0, 0, 0, 2, i, 4}}, {bytes, bytes, peers, ps});
  }
  x.set_totals(16, 56, 2 * 11'000'160 + 10'500'080);
  x.check();
}

TEST_CASE("collectives on one mesh run together, beside others one after another") {
  HandBundle x({2}, {4});
  x.add_member({8, 2}, "S(0)", {{Op::all_gather, "R", {0}}}, 3, 1);
  x.add_member({4}, "S(0)", {{Op::all_gather, "R", {0}}}, 1, 1);
  // Boxes of 16 B from three others each, 4 B of w2; chunks lie in order: nothing is packed. Of the
  // whole of 3 x 64 + 16 B a rank receives 3/4, at 10 ps a byte.
  x.add_round(0, {}, {{0, 0, 0, 3, 0, 1}, {1, 0, 0, 1, 0, 1}}, {3 * 48 + 12, 0, 8, 10'000'000 + 1'560});
  x.set_totals(0, 3 * (16 + 64) + 4 + 16, 10'001'560);
  x.check();
  SUBCASE("two at the same time") {
    x.bundle.rounds.clear();
    x.add_round(0, {}, {{0, 0, 0, 3, 0, 1}}, {3 * 48, 0, 6, 10'001'440});
    x.add_round(1, {}, {{1, 0, 0, 1, 0, 1}}, {12, 0, 2, 10'000'120});
    x.set_totals(0, 260, 10'001'440 + 10'000'120);
    x.check();
  }
  SUBCASE("beside an exchange") {
    // Both of train send 16 B to each of serve, which exchange that over the links that they gather
    // over: behind it. It takes more alone, for train's sake.
    x.add_member({8}, "S(0)", {{Op::exchange, "R"}}, 1);
    x.add_round(1, {}, {{2, 0, 0, 1, 0, 1}}, {32, 64, 4, 12'000'640});
    x.set_totals(64, 260 + 32 + 32, 10'001'560 + 11'000'320);
    x.check();
    x.set_totals(64, 260 + 32 + 32, 10'001'560 + 12'000'640);
    CHECK(x.message() != "");
  }
  SUBCASE("packed on every rank") {
    // Columns are gathered through a buffer of the whole: 64 B.
    x.add_member({8, 4}, "S(1)", {{Op::all_gather, "R", {0}}}, 1, 1);
    x.add_round(0, {}, {{2, 0, 0, 1, 0, 1}}, {96, 128, 2, 10'000'960});
    x.set_totals(128, 260 + 32 + 128 + 128, 10'001'560 + 10'000'960);
    x.check();
  }
}

TEST_CASE("a batch of 16 on meshes of 12") {
  // Rows: 2 on each of train's first 8 ranks, none on the last 4. Serve, 3 x 4: 6 6 4 rows, on 4
  // ranks each. Rows have 20 B.
  HandBundle x({12}, {3, 4});
  x.add_member({16, 5}, "S(0)", {{Op::exchange, "S(0)R"}}, 1);
  // A rank of train sends its 40 B to 4; one of serve receives 120 B from 3.
  x.add_round(0, {}, {{0, 0, 0, 1, 0, 1}}, {120, 160, 4, 12'001'600});
  x.set_totals(160, 240, 12'001'600);
  x.check();
}

// Members planned by the program, with a bundle over them.
Plan planned_with_bundle(Random& random) {
  for (;;) {
    const MeshTable meshes = test::bundle_meshes(random);
    const Topology topology = test::bundle_levels(random);
    std::vector<Request> requests;
    for (int64_t i = 0; i < 3; ++i) {
      Request& request = requests.emplace_back();
      request.id = "w" + std::to_string(i);
      request.tensor.shape = {16, 1 + random.below(12)};
      request.src_mesh = *find_mesh(meshes, "train");
      request.dst_mesh = *find_mesh(meshes, random.one_in(3) ? "train" : "serve");
      request.src = test::random_state(random, mesh_shape(meshes.meshes[request.src_mesh]), 2, 0, 3);
      request.dst = test::random_state(random, mesh_shape(meshes.meshes[request.dst_mesh]), 2, 0, 3);
      request.src.partial.clear();
      request.dst.partial.clear();
      request.count = 1 + random.below(3);
    }
    BundleRequest bundle;
    bundle.id = "sync";
    bundle.members = {0, 1};
    bundle.count = 1 + random.below(3);
    bundle.max_staging_bytes = random.one_in(2) ? 0 : 2'000;
    PlanOutcome outcome = plan_requests(meshes, topology, requests, {}, "sha256:" + std::string(64, '0'), {bundle});
    if (outcome.failures.empty()) return std::move(outcome.plan);
  }
}

TEST_CASE("plans with bundles are proven, written and read, and their totals are theirs") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Plan plan = planned_with_bundle(random);
    const Status status = verify_plan(plan);
    REQUIRE_MESSAGE(status.ok(), (status ? std::string() : status.error().message));
    const auto read = read_plan(write_plan(plan));
    REQUIRE(read.ok());
    const Status again = verify_plan(*read);
    REQUIRE_MESSAGE(again.ok(), (again ? std::string() : again.error().message));
    for (int64_t Totals::*field : {&Totals::collectives, &Totals::wire_bytes, &Totals::peak_bytes, &Totals::lower_bound_bytes}) {
      Plan other = plan;
      other.totals.*field += field == &Totals::lower_bound_bytes ? 1 + plan.totals.wire_bytes : 1;
      CHECK(!verify_plan(other).ok());
    }
    for (int64_t Totals::*field : {&Totals::predicted_ps, &Totals::lower_bound_ps}) {
      Plan other = *read;
      other.totals.*field += 1'000'000;
      CHECK(!verify_plan(other).ok());
    }
    Plan other = plan;
    other.bundles.push_back(other.bundles.front());
    CHECK(verify_plan(other).error().message == "two bundles are called 'sync'");
    other.bundles.back().request.id = "again";
    CHECK(verify_plan(other).error().message == "redistribution 'w0' is in bundle 'sync' and in bundle 'again', expected in one");
    other = plan;
    other.bundles.clear();
    // One tensor in one round costs what it costs by itself.
    CHECK(verify_plan(other).ok() == (totals_of_file(other) == other.totals));
  }
}

// Seconds that it takes, at most some.
void check_quick(const HandBundle& x, const std::string& expected) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string message = x.message();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(message.find(expected) != std::string::npos);
  CHECK(took.count() < 60);
  MESSAGE(took.count() << " s: " << message);
}

TEST_CASE("hostile bundles end soon") {
  SUBCASE("as many tensors as there are numbers") {
    HandBundle x({2}, {2});
    x.add_member({8}, "S(0)", {{Op::exchange, "S(0)"}, {Op::exchange, "R"}}, INT64_MAX);
    x.add_round(0, {}, {{0, 0, 0, INT64_MAX, 0, 1}}, {INT64_MAX, INT64_MAX, 1, INT64_MAX});
    x.add_round(0, {}, {{0, 1, 0, INT64_MAX, 0, 1}}, {INT64_MAX, INT64_MAX, 2, INT64_MAX});
    check_quick(x, "its total of wire_bytes is 0, counted from its parts it is 9223372036854775807");
    x.bundle.rounds[1].parts.front().from = INT64_MIN;
    check_quick(x, "it has tensors -9223372036854775808 to");
  }
  SUBCASE("one piece of a million") {
    HandBundle x({2}, {2});
    x.add_member({8}, "S(0)", {{Op::exchange, "R"}}, 1);
    x.add_round(0, {}, {{0, 0, 0, 1, 7, 1'000'000}}, {0, 0, 0, 0});
    check_quick(x, "runs in 1 pieces of 1000000");
    x.bundle.rounds[0].parts.front().pieces = INT64_MAX;
    check_quick(x, "pieces is 9223372036854775807, expected 1 to 1000000");
  }
  SUBCASE("a million pieces in rounds of their own") {
    HandBundle x({2}, {2});
    x.add_member({1'000'000}, "S(0)", {{Op::exchange, "R"}}, 1);
    for (int64_t i = 0; i < 200'000; ++i) x.add_round(0, {}, {{0, 0, 0, 1, i, 200'000}}, {24, 24, 2, 11'000'240});
    x.bundle.totals.rounds = 200'000;
    check_quick(x, "round 100000: wire_bytes is 24, counted from its parts it is 16");
  }
  SUBCASE("more ranks than are looked at") {
    HandBundle x({1 << 20}, {2});
    x.add_member({1 << 20}, "S(0)", {{Op::exchange, "R"}}, 1);
    x.add_round(0, {}, {{0, 0, 0, 1, 0, 1}}, {0, 0, 0, 0});
    check_quick(x, "more ranks, parts and boxes than are looked at one by one");
  }
  SUBCASE("like tensors cost nothing") {
    // Each tensor in a round of its own, all with the figures of one.
    HandBundle x({8, 8}, {4, 8});
    x.add_member({64, 16}, "S(0)S(1)", {{Op::exchange, "S(1)S(0)"}}, 1);
    x.add_round(0, {}, {{0, 0, 0, 1, 0, 1}}, {0, 0, 0, 0});
    REQUIRE(test::fill_figures(x.plan, x.bundle).empty());
    constexpr int64_t count = 44'000;
    const BundleRound one = x.bundle.rounds.front();
    x.plan.redistributions[0].request.count = x.bundle.tensors = count;
    for (int64_t t = 1; t < count; ++t) {
      BundleRound& round = x.bundle.rounds.emplace_back(one);
      round.parts.front().from = t;
      round.parts.front().to = t + 1;
    }
    BundleTotals& totals = x.bundle.totals;
    for (int64_t BundleTotals::*sum :
         {&BundleTotals::rounds, &BundleTotals::wire_bytes, &BundleTotals::messages, &BundleTotals::predicted_ps})
      totals.*sum *= count;
    check_quick(x, "its total of peak_bytes is ");
  }
}

}  // namespace
}  // namespace meshplan
