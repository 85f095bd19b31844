#include "measure/measure_bundle.h"

#include <nlohmann/json.hpp>

#include "../replay_host/hand_bundle.h"
#include "cost/round_time.h"
#include "replay/executor.h"
#include "replay_host/open_backend.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

Plan two_streams() {
  const MeshTable table = train_and_serve(6, 4);
  Plan plan = plan_of(
      member(table, "train", "serve", {48, 10}, DType::bfloat16, "S(0)", {onto("serve", "y", "S(0)"), onto("serve", "y", "R")}), "w", 3);
  PlannedBundle bundle;
  bundle.request.id = "sync";
  bundle.request.members = {0};
  bundle.tensors = 3;
  bundle.rounds.resize(4);  // the second half is fetched while the first is shared
  for (int64_t piece = 0; piece < 2; ++piece) {
    bundle.rounds[static_cast<size_t>(piece)].parts = {{0, 0, 0, 3, piece, 2}};
    bundle.rounds[static_cast<size_t>(piece) + 2] = {Op::exchange, "", 1, {static_cast<size_t>(piece)}, {{0, 1, 0, 3, piece, 2}}};
  }
  plan.bundles.push_back(bundle);
  for (BundleRound& round : plan.bundles[0].rounds) round.predicted_ps = 7'000'000;
  plan.bundles[0].totals.predicted_ps = 50'000'000;
  plan.bundles[0].alone_ps = 90'000'000;
  return plan;
}

// One tensor is gathered while the other one is fetched.
Plan gathered_beside() {
  const MeshTable table = train_and_serve(6, 4);
  const HandStep gather{Op::all_gather, {"y"}, "R", std::nullopt, 1, 1, false, "serve"};
  Plan plan = plan_of(member(table, "train", "serve", {48, 10}, DType::bfloat16, "S(0)", {onto("serve", "y", "S(0)"), gather}), "w", 2);
  PlannedBundle bundle;
  bundle.request.id = "sync";
  bundle.request.members = {0};
  bundle.tensors = 2;
  bundle.rounds.resize(4);
  for (int64_t tensor = 0; tensor < 2; ++tensor) {
    const auto at = static_cast<size_t>(tensor);
    bundle.rounds[at].parts = {{0, 0, tensor, tensor + 1}};
    bundle.rounds[at + 2] = {Op::all_gather, "", 1, {at}, {{0, 1, tensor, tensor + 1}}, 720, 0, 2, 9'000'000};
  }
  bundle.totals.predicted_ps = 50'000'000;
  plan.bundles.push_back(bundle);
  return plan;
}

MeasureReport measure_bundle_on_host(const Plan& plan, const MeasureOptions& options) {
  const auto question = backend_question("host", plan, options.replay);
  REQUIRE(question.ok());
  auto backend = open_backend("host", *question);
  REQUIRE(backend.ok());
  auto report = measure(plan, options, *backend->communicator, *backend->device);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  return *report;
}

}  // namespace

TEST_CASE("a bundle is timed wave by wave, as a whole, and beside its members one by one") {
  const Plan plan = two_streams();
  MeasureOptions options;
  options.repetitions = 6;
  options.alone = true;
  const MeasureReport report = measure_bundle_on_host(plan, options);
  REQUIRE(report.bundles.size() == 1);
  CHECK(report.redistributions.empty());
  const BundleTimes& times = report.bundles[0];
  CHECK(times.replay.wrong == 0);
  CHECK(times.replay.checked == 3 * 4 * 480);
  CHECK_FALSE(times.smaller);
  CHECK(times.samples_ns.size() == 6);
  CHECK(times.alone_samples_ns.size() == 6);
  CHECK(times.predicted_ns == 50'000);
  CHECK(times.predicted_alone_ns == 90'000);
  size_t rounds = 0;
  for (const WaveTimes& wave : times.waves) {
    CHECK(wave.samples_ns.size() == 6);
    CHECK(wave.predicted_ns > 0);
    rounds += wave.rounds.size();
  }
  CHECK(rounds == plan.bundles[0].rounds.size());
  CHECK(times.waves.size() < rounds);
  const std::string text = to_text(report);
  CHECK(text.find("sync: bundle of 3 tensors, staging ") != std::string::npos);
  CHECK(text.find("one by one") != std::string::npos);
  CHECK(text.find(" times as fast") != std::string::npos);
  const auto json = nlohmann::json::parse(write_report(report));
  CHECK(nlohmann::ordered_json::parse(write_report(report)).dump() == json.dump());
  CHECK(json["bundles"][0]["alone"]["time"]["samples_ns"].size() == 6);
  CHECK(json["bundles"][0]["waves"].size() == times.waves.size());
  CHECK(json["bundles"][0]["staging_bytes"] == times.replay.staging_bytes);
  CHECK(nlohmann::json::parse(write_timeline(report))["traceEvents"].size() == 3 + 2 * times.waves.size());
}

TEST_CASE("at smaller shapes predictions are those of the messages that are sent") {
  const Plan plan = two_streams();
  MeasureOptions options;
  options.repetitions = 2;
  options.replay.shrink = true;
  const BundleTimes times = measure_bundle_on_host(plan, options).bundles.at(0);
  CHECK(times.smaller);
  CHECK(times.alone_samples_ns.empty());
  int64_t sum = 0;
  for (const WaveTimes& wave : times.waves) {
    sum += wave.predicted_ns;
    for (const size_t round : wave.rounds) CHECK(times.rounds[round].predicted_ns != 7'000);
    if (wave.rounds.size() == 1) CHECK(wave.predicted_ns == times.rounds[wave.rounds[0]].predicted_ns);
  }
  CHECK(times.predicted_ns > 0);
  CHECK(times.predicted_ns <= sum);
}

TEST_CASE("a wave of exchanges and collectives takes both where they share links") {
  const Plan plan = gathered_beside();
  MeasureOptions options;
  options.repetitions = 1;
  const BundleTimes times = measure_bundle_on_host(plan, options).bundles.at(0);
  CHECK(times.replay.wrong == 0);
  REQUIRE(times.waves.size() == 3);
  CHECK(times.waves[1].rounds.size() == 2);
  // On one level the second exchange, of the ranks that gather, comes behind the all_gather; ranks
  // of train have as many peers and bytes as they.
  CHECK(times.waves[1].predicted_ns == 9'000 + times.waves[0].predicted_ns);
  CHECK(times.waves[2].predicted_ns == 9'000);
  // Of smaller shapes nothing is said of collectives.
  options.replay.shrink = true;
  const BundleTimes smaller = measure_bundle_on_host(plan, options).bundles.at(0);
  REQUIRE(smaller.smaller);
  CHECK(smaller.waves[0].predicted_ns > 0);
  CHECK(smaller.waves[1].predicted_ns == 0);
  CHECK(smaller.predicted_ns == 0);
  CHECK(smaller.rounds[2].predicted_ns == 0);
  CHECK(smaller.rounds[2].wire_bytes == 0);
}

TEST_CASE("of two plans that are measured in turns the bundles are named, whose members alone are timed") {
  const Plan bundled = two_streams();
  Plan plain = bundled;
  plain.bundles.clear();
  MeasureOptions options;
  options.repetitions = 2;
  auto backend = open_backend("host", *backend_question("host", bundled, options.replay));
  REQUIRE(backend.ok());
  const auto against = [&](const Plan& first, const Plan& second) {
    return measure_against(first, second, options, *backend->communicator, *backend->device);
  };
  const std::string line = "\nbundle sync: its members are timed one by one, its rounds are not; run each plan with --measure\n";
  using Plans = std::pair<const Plan*, const Plan*>;
  for (const auto& [first, second] : {Plans(&bundled, &plain), Plans(&plain, &bundled), Plans(&bundled, &bundled)}) {
    const auto report = against(*first, *second);
    REQUIRE(report.ok());
    CHECK(report->bundles == std::vector<std::string>{"sync"});
    CHECK(report->entries.size() == 1);
    CHECK(to_text(*report).find(line) != std::string::npos);
  }
  CHECK(to_text(*against(plain, plain)).find("bundle") == std::string::npos);
  options.replay.only_ids = {"sync"};
  CHECK(against(bundled, plain).error().message == "'sync' is a bundle, not a redistribution; name its members, 'w' the first");
  options.replay.only_ids = {"v"};
  CHECK(against(bundled, plain).error().message == "the plan has no redistribution 'v'; did you mean 'w'?");
}

TEST_CASE("a bundle that is only checked has what the plan says of its rounds") {
  const Plan plan = two_streams();
  const auto question = backend_question("host", plan, {});
  auto backend = open_backend("host", *question);
  const auto checked = replay(plan, {}, *backend->communicator, *backend->device);
  REQUIRE(checked.ok());
  const MeasureReport report = untimed(plan, {}, *checked);
  REQUIRE(report.bundles.size() == 1);
  CHECK(report.bundles[0].rounds.size() == plan.bundles[0].rounds.size());
  CHECK(report.bundles[0].samples_ns.empty());
  const auto json = nlohmann::json::parse(write_report(report));
  CHECK_FALSE(json["bundles"][0].contains("time"));
}
