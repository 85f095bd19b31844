// Bundles run by their rounds: every element of every tensor of every member, in any schedule that the rules of plan/bundle.h allow.
#include "hand_bundle.h"
#include "replay_host/host.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

BundleReport replay_bundle(const Plan& plan, ReplayOptions options = {}) {
  options.threads = 2;
  auto report = replay_on_host(plan, options);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  CHECK_MESSAGE(all_right(*report), to_text(*report));
  CHECK(checked_elements(*report) > 0);
  REQUIRE(report->bundles.size() == 1);
  return report->bundles[0];
}

RoundPart part(size_t member, int64_t step, int64_t from, int64_t to, int64_t piece = 0, int64_t pieces = 1) {
  return {member, step, from, to, piece, pieces};
}

BundleRound exchange_of(std::vector<RoundPart> parts, std::vector<size_t> after = {}, int64_t stream = 0) {
  BundleRound round;
  round.parts = std::move(parts);
  round.after = std::move(after);
  round.stream = stream;
  return round;
}

// Two tensors "w" of 8 bfloat16 and one "v" of 4 float32, from ranks 0 1 to 2 3: whole halves, then shared.
Plan small_plan() {
  const MeshTable table = train_and_serve(2, 2);
  Plan plan =
      plan_of(member(table, "train", "serve", {8}, DType::bfloat16, "S(0)", {onto("serve", "y", "S(0)"), onto("serve", "y", "R")}), "w", 2);
  add_member(plan, member(table, "train", "serve", {4}, DType::float32, "S(0)", {onto("serve", "y", "S(0)")}), "v", 1);
  PlannedBundle bundle;
  bundle.request.id = "sync";
  bundle.request.members = {0, 1};
  bundle.tensors = 3;
  bundle.rounds = {exchange_of({part(0, 0, 0, 2, 0, 2)}), exchange_of({part(0, 0, 0, 2, 1, 2), part(1, 0, 0, 1)}),
                   exchange_of({part(0, 1, 0, 2, 0, 2)}, {0}, 1), exchange_of({part(0, 1, 0, 2, 1, 2)}, {1}, 1)};
  plan.bundles.push_back(bundle);
  return plan;
}

}  // namespace

TEST_CASE("a small bundle sends one message a peer, and stages what can be counted by hand") {
  const BundleReport report = replay_bundle(small_plan());
  CHECK(report.tensors == 3);
  CHECK(report.replayed == 3);
  CHECK(report.rounds == 4);
  CHECK(report.waves == 3);  // 0 | 1 2 | 3
  CHECK(report.checked == 2 * 2 * 8 + 2 * 2);
  // Rank 2 gets in round 0 from rank 0, in round 2 it sends to rank 3 and receives from it.
  CHECK(report.messages == std::vector<int64_t>{1, 1, 2, 2});
  // Wave 1: round 1 brings rank 2 two pieces of 2 elements of w and half of v (8 + 8 B), round 2 shares two pieces of 2 elements each way
  // (8 + 8 B), and the boxes between the steps of both tensors w are 2 x 4 elements (16 B).
  CHECK(report.staging_bytes == 48);
  // With the targets: twice 8 elements of w and half of v.
  CHECK(report.peak_bytes == 48 + 32 + 8);
}

TEST_CASE("staging and messages above their limits are found") {
  Plan plan = small_plan();
  plan.bundles[0].request.max_staging_bytes = 48;
  plan.bundles[0].request.max_messages = 2;
  replay_bundle(plan);
  for (const bool staging : {true, false}) {
    Plan tight = plan;
    (staging ? tight.bundles[0].request.max_staging_bytes : tight.bundles[0].request.max_messages) -= 1;
    const auto report = replay_on_host(tight, {});
    REQUIRE(report.ok());
    CHECK_FALSE(all_right(*report));
    CHECK(wrong_elements(*report) == 0);
    CHECK(to_text(*report).find(staging ? "ABOVE ITS LIMIT: staging 48 B measured" : "ABOVE THEIR LIMIT: messages 2") != std::string::npos);
    const std::string wrong =
        staging ? "bundle 'sync' staged 48 B, above its limit of 47 B" : "bundle 'sync' took 2 messages in a round, above its limit of 1";
    CHECK(what_is_wrong(*report) == wrong);
  }
  plan.bundles[0].request.max_staging_bytes = 0;  // no limit
  replay_bundle(plan);
}

TEST_CASE("a round that does not wait for what it needs brings wrong data, or is refused") {
  Plan plan = small_plan();
  plan.bundles[0].rounds[2].after = {};  // on a stream of its own: in the wave of round 0
  auto report = replay_on_host(plan, {});
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message == "bundle 'sync', rounds 0 2: redistribution 'w', step 1 runs before the step that it needs");
  // Round 3 shares in the wave in which round 1 fetches.
  plan = small_plan();
  plan.bundles[0].rounds[3].after = {};
  plan.bundles[0].rounds[3].stream = 2;
  plan.bundles[0].rounds[3].after = {0};
  report = replay_on_host(plan, {});
  REQUIRE(report.ok());
  CHECK_FALSE(all_right(*report));
  REQUIRE_FALSE(report->bundles[0].differences.empty());
  for (const Difference& d : report->bundles[0].differences) {
    CHECK(d.bundle->id == "w");
    CHECK(d.bundle->round == 3);
    CHECK(d.step == 1);
  }
  // A piece that no round runs.
  plan = small_plan();
  plan.bundles[0].rounds[1].parts = {part(1, 0, 0, 1)};
  report = replay_on_host(plan, {});
  REQUIRE(report.ok());
  CHECK(wrong_elements(*report) > 0);
  // A tensor that no round runs.
  plan = small_plan();
  for (BundleRound& round : plan.bundles[0].rounds) {
    for (RoundPart& p : round.parts) {
      if (p.member == 0) p.to = 1;
    }
  }
  report = replay_on_host(plan, {});
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message == "bundle 'sync': no round runs tensor 1 of redistribution 'w', step 0");
}

TEST_CASE("of very many members that repeat one another few are replayed, one at least for each way in which they move") {
  constexpr size_t members = 5'000;
  const MeshTable table = train_and_serve(2, 2);
  const auto question = [&](int64_t extent) {
    return member(table, "train", "serve", {extent}, DType::bfloat16, "S(0)", {onto("serve", "y", "S(0)"), onto("serve", "y", "R")});
  };
  Plan plan = plan_of(question(8), "w0", 1);
  for (size_t m = 1; m < members; ++m) add_member(plan, question(m % 2 == 0 ? 8 : 12), "w" + std::to_string(m), 1);
  PlannedBundle bundle;
  bundle.request.id = "sync";
  bundle.request.max_staging_bytes = 0;
  bundle.tensors = members;
  bundle.rounds = {exchange_of({}), exchange_of({}, {0}), exchange_of({}, {}, 1), exchange_of({}, {2}, 1)};
  for (size_t m = 0; m < members; ++m) {
    bundle.request.members.push_back(m);
    const size_t bucket = m < 4'000 ? 0 : 2;
    for (const size_t step : {size_t{0}, size_t{1}})
      bundle.rounds[bucket + step].parts.push_back(part(m, static_cast<int64_t>(step), 0, 1));
  }
  plan.bundles.push_back(bundle);
  // Two questions in two buckets, the first and the last of each.
  CHECK(replay_bundle(plan).replayed == 8);
  ReplayOptions all;
  all.full_size = true;
  const BundleReport whole = replay_bundle(plan, all);
  CHECK(whole.replayed == members);
  CHECK(whole.checked == 2 * (2'500 * 8 + 2'500 * 12));
  // The one that moves otherwise is among the few.
  plan.bundles[0].rounds[1].parts.erase(plan.bundles[0].rounds[1].parts.begin() + 2'501);
  const auto report = replay_on_host(plan, {});
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message == "bundle 'sync': no round runs tensor 0 of redistribution 'w2501', step 1");
}

TEST_CASE("any schedule of a sync brings every element of every tensor") {
  constexpr unsigned seed = 4711;
  std::mt19937 random(seed);
  CAPTURE(seed);
  int64_t together = 0;
  int64_t in_pieces = 0;
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const int64_t train = std::vector<int64_t>{12, 3, 1, 5}[random() % 4];
    Plan plan = sync_plan(train, static_cast<int64_t>(1 + random() % 4));
    const Scheduling how{static_cast<int64_t>(1 + random() % 9), static_cast<int64_t>(1 + random() % 3),
                         static_cast<int64_t>(1 + random() % 5)};
    plan.bundles.push_back(schedule(plan, "sync", all_members(plan), how, random));
    const BundleReport report = replay_bundle(plan);
    CHECK(report.replayed == report.tensors);
    together += report.rounds - report.waves;
    for (const BundleRound& r : plan.bundles[0].rounds)
      in_pieces += std::count_if(r.parts.begin(), r.parts.end(), [](const RoundPart& p) { return p.pieces > 1; });
  }
  CHECK(together > 50);
  CHECK(in_pieces > 50);
}

TEST_CASE("staging and messages are those that the transfers count") {
  std::mt19937 random(17);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    Plan plan = sync_plan(12, 4);
    const std::vector<size_t> exchanges{0, 1, 2, 3, 5, 6, 8, 10};
    const Scheduling how{static_cast<int64_t>(1 + random() % 6), static_cast<int64_t>(1 + random() % 3), 4};
    plan.bundles.push_back(schedule(plan, "sync", exchanges, how, random));
    ReplayOptions options;
    options.only_ids = {"sync"};
    const BundleReport report = replay_bundle(plan, options);
    const Counted counted = count_exchanges(plan, plan.bundles[0]);
    CHECK(report.messages == counted.messages);
    CHECK(report.staging_bytes == counted.staging);
  }
}

TEST_CASE("members run by themselves where they are named, and outside of the bundle what is in none") {
  std::mt19937 random(3);
  Plan plan = sync_plan(3, 2);
  plan.bundles.push_back(schedule(plan, "sync", {1, 2, 3}, {}, random));
  auto report = replay_on_host(plan, {});
  REQUIRE(report.ok());
  CHECK(report->bundles.size() == 1);
  CHECK(report->redistributions.size() == plan.redistributions.size() - 3);
  CHECK(to_text(*report).find("1 bundle and 10 redistributions on 5 ranks") != std::string::npos);
  ReplayOptions options;
  options.only_ids = {"norm"};
  report = replay_on_host(plan, options);
  REQUIRE(report.ok());
  CHECK(report->bundles.empty());
  CHECK(report->redistributions.size() == 1);
  options.only_ids = {"synk"};
  report = replay_on_host(plan, options);
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message == "the plan has no redistribution 'synk'; did you mean 'sync'?");
}

TEST_CASE("a large bundle shrinks: shapes, and like tensors that the rounds treat alike") {
  std::mt19937 random(5);
  const MeshTable table = train_and_serve(12, 4);
  Plan plan =
      plan_of(member(table, "train", "serve", {7168, 2048}, DType::bfloat16, "S(0)", {onto("serve", "y", "S(0)"), onto("serve", "y", "R")}),
              "experts", 44'000);
  add_member(plan, member(table, "train", "serve", {7168}, DType::float32, "R", {onto("serve", "y", "R")}), "norms", 61);
  plan.bundles.push_back(schedule(plan, "sync", {0, 1}, {3, 2, 8}, random));
  BundleReport report = replay_bundle(plan);
  CHECK(report.tensors == 44'061);
  CHECK(report.replayed < 100);
  CHECK(report.shrunk);
  CHECK(to_text(*replay_on_host(plan, {})).find("the first and last of those that move alike") != std::string::npos);
  plan.redistributions[0].request.count = 3;
  plan.redistributions[0].request.tensor.shape = {48, 8};
  plan.redistributions[1].request.count = 1;
  plan.redistributions[1].request.tensor.shape = {31};
  plan.bundles[0] = schedule(plan, "sync", {0, 1}, {3, 2, 8}, random);
  report = replay_bundle(plan);
  CHECK(report.replayed == 4);
  CHECK_FALSE(report.shrunk);
  ReplayOptions options;
  options.shrink = true;
  CHECK(replay_bundle(plan, options).shrunk);
}

TEST_CASE("a fault in a round is found and named by rank, bundle, round, tensor and index") {
  const Plan plan = small_plan();
  struct Story {
    int64_t round;
    int64_t rank;
  };
  for (const Story& story : std::vector<Story>{{0, 2}, {1, 3}, {2, 3}, {3, 2}}) {
    for (const FaultKind kind : {FaultKind::flip, FaultKind::drop, FaultKind::swap}) {
      ReplayOptions options;
      options.faults = {{story.round, story.rank, kind}};
      CAPTURE(to_text(options.faults[0]));
      const auto report = replay_on_host(plan, options);
      REQUIRE(report.ok());
      CHECK_FALSE(all_right(*report));
      REQUIRE_FALSE(report->bundles[0].differences.empty());
      for (const Difference& d : report->bundles[0].differences) {
        CHECK(d.rank == story.rank);
        CHECK(d.bundle->round == story.round);
        CHECK(d.bundle->id == "w");
        CHECK(d.expected != d.found);
      }
      CHECK(to_text(*report).find("rank " + std::to_string(story.rank) + ", round " + std::to_string(story.round) +
                                  ": w, tensor 0, step") != std::string::npos);
    }
    ReplayOptions options;
    options.faults = {{story.round, story.rank, FaultKind::overrun}};
    const auto report = replay_on_host(plan, options);
    REQUIRE(report.ok());
    REQUIRE(report->bundles[0].overruns.size() == 1);
    CHECK(report->bundles[0].overruns[0].rank == story.rank);
    CHECK_FALSE(all_right(*report));
    CHECK(what_is_wrong(*report) == "1 buffer is written past its end");
  }
  for (const auto& [fault, message] : std::vector<std::pair<InjectedFault, std::string>>{
           {{1, 3, FaultKind::memory}, "bundle 'sync', round 1: rank 3 cannot allocate its buffers (injected)"},
           {{0, 0, FaultKind::flip}, "--inject 0:0:flip: rank 0 gets nothing in bundle 'sync', round 0; choose another rank"},
           {{4, 0, FaultKind::flip}, "--inject 4:0:flip: no remaining redistribution has a step 4"}}) {
    ReplayOptions options;
    options.faults = {fault};
    const auto report = replay_on_host(plan, options);
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().message == message);
  }
}

TEST_CASE("of two phases what was fetched is passed on from the new box") {
  // Hosts of 2 have ranks 0 1, 2 3 and 4 of train 0 1 and serve 2 3 4: of [8] ranks 2 and 3 fetch a half each for their host, rank 4 all of it.
  for (const int64_t pieces : {2, 4, 6}) {
    const MeshTable table = train_and_serve(2, 3);
    Plan plan = plan_of(member(table, "train", "serve", {8}, DType::bfloat16, "S(0)", {onto("serve", "y", "R")}), "w", 3);
    plan.topology.levels = {{"host", 2, 4'000, 0, 0}, {"all", 1'048'576, 1'000, 0, 0}};
    plan.redistributions[0].steps[0].phases = 2;
    PlannedBundle bundle;
    bundle.request.id = "sync";
    bundle.request.members = {0};
    bundle.tensors = 3;
    for (int64_t piece = 0; piece < pieces; piece += 2) bundle.rounds.push_back(exchange_of({part(0, 0, 0, 3, piece, pieces)}));
    for (int64_t piece = 1; piece < pieces; piece += 2)
      bundle.rounds.push_back(exchange_of({part(0, 0, 0, 3, piece, pieces)}, {static_cast<size_t>(piece / 2)}, 1));
    plan.bundles.push_back(bundle);
    const BundleReport report = replay_bundle(plan);
    CHECK(report.checked == 3 * 3 * 8);
    // Rank 4 fetches from two ranks; ranks 2 and 3 send each other what they fetched.
    for (const int64_t messages : report.messages) CHECK(messages == 2);
    ReplayOptions options;
    options.faults = {{pieces / 2, 3, FaultKind::flip}};
    const auto spoiled = replay_on_host(plan, options);
    REQUIRE(spoiled.ok());
    CHECK_FALSE(all_right(*spoiled));
  }
}

TEST_CASE("two phases behind a step in pieces share what is there while the rest crosses") {
  // As in tests/verify/bundle_hand_test.cc: ranks 0 1 give ranks 2 to 5, in hosts of 2, a quarter of [32] each.
  const MeshTable table = train_and_serve(2, 4);
  Plan plan =
      plan_of(member(table, "train", "serve", {32}, DType::float32, "R", {onto("serve", "y", "S(0)"), onto("serve", "y", "R")}), "w", 1);
  plan.topology.levels = {{"host", 2, 4'000, 0, 0}, {"all", 1'048'576, 1'000, 0, 0}};
  plan.redistributions[0].steps[1].phases = 2;
  PlannedBundle bundle;
  bundle.request.id = "sync";
  bundle.request.members = {0};
  bundle.tensors = 1;
  bundle.rounds = {exchange_of({part(0, 0, 0, 1, 0, 2)}),         exchange_of({part(0, 0, 0, 1, 1, 2)}),
                   exchange_of({part(0, 1, 0, 1, 0, 4)}, {0}, 1), exchange_of({part(0, 1, 0, 1, 2, 4)}, {1}, 1),
                   exchange_of({part(0, 1, 0, 1, 1, 4)}, {2}, 2), exchange_of({part(0, 1, 0, 1, 3, 4)}, {3}, 2)};
  plan.bundles.push_back(bundle);
  const BundleReport report = replay_bundle(plan);
  CHECK(report.waves == 4);
  CHECK(report.checked == 4 * 32);
  CHECK(report.messages == std::vector<int64_t>{4, 4, 4, 4, 2, 2});
  CHECK(report.staging_bytes == 128);
  CHECK(report.peak_bytes == 256);
  for (int64_t round = 0; round < 6; ++round) {
    ReplayOptions options;
    options.faults = {{round, 3, FaultKind::flip}};
    const auto spoiled = replay_on_host(plan, options);
    REQUIRE(spoiled.ok());
    CHECK_FALSE(all_right(*spoiled));
  }
}

TEST_CASE("what no round runs is refused") {
  Plan plan = small_plan();
  plan.redistributions[1].steps[0].phases = 2;
  auto report = replay_on_host(plan, {});
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message == "bundle 'sync', round 1, part 1: an exchange in two phases goes in an even number of pieces");
  plan = small_plan();
  plan.bundles[0].rounds[0].op = Op::all_gather;
  report = replay_on_host(plan, {});
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().message.find("is in a round of all_gather") != std::string::npos);
}
