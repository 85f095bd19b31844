#include "measure/measure.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "../replay_host/hand_made.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "measure/measured_file.h"
#include "replay/data.h"
#include "replay_host/open_backend.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

Plan plan_of(const std::vector<HandStep>& steps, const std::string& src, std::vector<int64_t> shape = {64, 32}) {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 2}});
  hand.tensor = {std::move(shape), DType::float32};
  hand.src = src;
  hand.steps = steps;
  return make_plan(hand);
}

MeasureReport measure_on_host(const Plan& plan, const MeasureOptions& options) {
  auto backend = open_backend("host", {4, {}, 1});
  REQUIRE(backend.ok());
  auto report = measure(plan, options, *backend->communicator, *backend->device);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  return *report;
}

// nlohmann::json sorts keys, ordered_json keeps them as they stand.
bool keys_ascend(const std::string& text) { return nlohmann::ordered_json::parse(text).dump() == nlohmann::json::parse(text).dump(); }

}  // namespace

TEST_CASE("sizes and counts are those of nccl-tests, per op") {
  MeasureOptions options;
  options.repetitions = 7;
  struct Story {
    std::string src;
    HandStep step;
    int64_t size;
    int64_t count;
    double bus;
    int64_t peers;
  };
  // float32 [64, 32]: 8192 B in all.
  for (const Story& s :
       std::vector<Story>{{"S(0)[0]S(0)[1]", {Op::all_gather, {"a", "b"}, "RR"}, 8192, 512, 0.75, 0},
                          {"P(sum)P(sum)", {Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum}, 8192, 2048, 1.5, 0},
                          {"P(sum)P(sum)", {Op::reduce_scatter, {"a", "b"}, "S(0)[0]S(0)[1]", ReduceOp::sum}, 8192, 512, 0.75, 0},
                          {"S(0)[0]S(0)[1]", {Op::all_to_all, {"a", "b"}, "S(1)[0]S(1)[1]"}, 2048, 128, 0.75, 3},
                          // Both that need a box ask the same holder.
                          {"S(0)R", {Op::exchange, {"a", "b"}, "S(1)R"}, 2048, 512, 1, 2}}) {
    CAPTURE(to_text(s.step.op));
    const MeasureReport report = measure_on_host(plan_of({s.step}, s.src), options);
    REQUIRE(report.redistributions.size() == 1);
    const RedistributionTimes& r = report.redistributions[0];
    REQUIRE(r.steps.size() == 1);
    CHECK(r.steps[0].size_bytes == s.size);
    CHECK(r.steps[0].count == s.count);
    CHECK(r.steps[0].peers == s.peers);
    CHECK(r.steps[0].samples_ns.size() == 7);
    CHECK(r.samples_ns.size() == 7);
    CHECK(r.replay.wrong == 0);
    CHECK(r.replay.checked > 0);
    CHECK(r.steps[0].predicted_ns > 10000);
    CHECK(bus_bandwidth(r.steps[0]) == doctest::Approx(algorithm_bandwidth(r.steps[0]) * s.bus));
    CHECK(algorithm_bandwidth(r.steps[0]) > 0);
  }
}

TEST_CASE("the worked example of the header") {
  StepTimes step;
  step.op = Op::all_gather;
  step.group_size = 4;
  step.size_bytes = 4194304;
  step.samples_ns = {200000};
  CHECK(algorithm_bandwidth(step) == doctest::Approx(20.97).epsilon(0.001));
  CHECK(bus_bandwidth(step) == doctest::Approx(15.73).epsilon(0.001));
}

// Lines that nccl-tests printed for others: github.com/kvcache-ai/Mooncake pull request 3484 (8 GPUs), NVIDIA/dgx-spark-playbooks pull
// request 103 (2 GPUs).
TEST_CASE("bandwidths are what nccl-tests prints for the same size and time") {
  struct Line {
    int64_t ranks;
    int64_t size;
    int64_t count;
    int64_t ns;
    double algbw;
    double busbw;
  };
  for (const Line& line : std::vector<Line>{{8, 33554432, 8388608, 195400, 171.72, 300.51},
                                            {8, 1048576, 262144, 27760, 37.78, 66.11},
                                            {8, 65536, 16384, 18950, 3.46, 6.05},
                                            {2, 65536, 16384, 67930, 0.96, 0.96}}) {
    HandPlan hand;
    hand.table = one_mesh({{"a", line.ranks}});
    hand.tensor = {{line.count}, DType::float32};
    hand.src = "P(sum)";
    hand.steps = {{Op::all_reduce, {"a"}, "R", ReduceOp::sum}};
    ReplayReport replayed;
    replayed.redistributions.push_back({});
    replayed.redistributions[0].id = "hand";
    replayed.redistributions[0].replay_shape = {line.count};
    MeasureReport report = untimed(make_plan(hand), {}, replayed);
    StepTimes& step = report.redistributions.at(0).steps.at(0);
    CHECK(step.size_bytes == line.size);
    CHECK(step.count == line.count);
    step.samples_ns = {line.ns};
    CHECK(algorithm_bandwidth(step) == doctest::Approx(line.algbw).epsilon(0.006));
    CHECK(bus_bandwidth(step) == doctest::Approx(line.busbw).epsilon(0.006));
    const auto json = nlohmann::json::parse(write_nccl_tests_json(report)).at("results").at(0);
    CHECK(json.at("type") == "float");
    CHECK(json.at("redop") == "sum");
    CHECK(json.at("size") == line.size);
  }
  // NVIDIA/nccl-tests issue 128: reduce_scatter over 8 ranks prints size 128, count 4.
  HandPlan hand;
  hand.table = one_mesh({{"a", 8}});
  hand.tensor = {{32}, DType::float32};
  hand.src = "P(sum)";
  hand.steps = {{Op::reduce_scatter, {"a"}, "S(0)", ReduceOp::sum}};
  ReplayReport replayed;
  replayed.redistributions.push_back({});
  replayed.redistributions[0].id = "hand";
  replayed.redistributions[0].replay_shape = {32};
  const StepTimes step = untimed(make_plan(hand), {}, replayed).redistributions.at(0).steps.at(0);
  CHECK(step.size_bytes == 128);
  CHECK(step.count == 4);
}

Result<Topology> fitted_to(const std::vector<MeasuredFile>& files) {
  const auto rows = settle_rows(files, std::nullopt);
  REQUIRE(rows.ok());
  auto fitted = calibrate(rows->base, rows->rows);
  REQUIRE(fitted.ok());
  return fitted->topology;
}

// Reports of times that follow a law with noise, through JSON: fitted sizes come back within 10 % in the median, sizes that were held back
// within 25 %, for every op.
TEST_CASE("calibration from noisy reports reproduces fitted sizes, and held-back ones nearly") {
  const std::vector<std::pair<std::string, HandStep>> stories{
      {"S(0)[0]S(0)[1]", {Op::all_gather, {"a", "b"}, "RR"}},
      {"P(sum)P(sum)", {Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum}},
      {"P(sum)P(sum)", {Op::reduce_scatter, {"a", "b"}, "S(0)[0]S(0)[1]", ReduceOp::sum}},
      {"S(0)[0]S(0)[1]", {Op::all_to_all, {"a", "b"}, "S(1)[0]S(1)[1]"}},
      {"S(0)R", {Op::exchange, {"a", "b"}, "S(1)R"}}};
  uint64_t seed = 11;
  auto noise = [&] {  // 0.85 to 1.15, and now and then a slow one
    seed = mix(seed, 5);
    const double slow = seed % 16 == 0 ? 1.5 : 1.0;
    return slow * (0.85 + 0.3 * static_cast<double>(seed >> 11) / static_cast<double>(uint64_t{1} << 53));
  };
  auto law = [](const StepTimes& step) {
    const double weight = step.op == Op::all_reduce ? 2 : 1;
    return 9000.0 + weight * static_cast<double>(step.size_bytes) / 25;
  };
  auto frame = [&](const std::pair<std::string, HandStep>& story, int64_t rows, Plan& plan) {
    plan = plan_of({story.second}, story.first, {rows, 64});
    ReplayReport replayed;
    replayed.redistributions.push_back({});
    replayed.redistributions[0].id = "hand";
    replayed.redistributions[0].replay_shape = {rows, 64};
    return untimed(plan, {}, replayed);
  };
  std::vector<MeasuredFile> reports;
  for (const auto& story : stories) {
    for (int64_t rows = 16; rows <= 1 << 16; rows *= 4) {
      Plan plan;
      MeasureReport report = frame(story, rows, plan);
      report.repetitions = 25;
      StepTimes& step = report.redistributions[0].steps[0];
      for (int i = 0; i < 25; ++i) step.samples_ns.push_back(static_cast<int64_t>(law(step) * noise()));
      auto file = read_measured(write_report(report), "report.json");
      REQUIRE_MESSAGE(file.ok(), (file.ok() ? "" : file.error().message));
      reports.push_back(*file);
    }
  }
  const auto topology = fitted_to(reports);
  for (const auto& story : stories) {
    CAPTURE(to_text(story.second.op));
    std::vector<double> off;
    for (int64_t rows = 16; rows <= 1 << 16; rows *= 2) {
      Plan plan;
      const MeasureReport report = frame(story, rows, plan);
      const Mesh& mesh = plan.meshes.meshes[0];
      const PlannedRedistribution& r = plan.redistributions[0];
      const StepCost cost = price_step({&*topology, &mesh, &mesh, &r.request.tensor, std::nullopt, &r.request.src, &r.steps[0]});
      const double ratio = static_cast<double>(ns_of_ps(cost.predicted_ps)) / law(report.redistributions[0].steps[0]);
      const bool fitted = std::popcount(static_cast<uint64_t>(rows)) == 1 && std::countr_zero(static_cast<uint64_t>(rows)) % 2 == 0;
      if (fitted) {
        off.push_back(std::abs(ratio - 1));
      } else {
        CAPTURE(rows);
        CHECK(ratio > 0.75);
        CHECK(ratio < 1.25);
      }
    }
    std::sort(off.begin(), off.end());
    CHECK(off[off.size() / 2] <= 0.10);
  }
}

TEST_CASE("a report is JSON that calibration reads back, and planning with it predicts what was measured") {
  MeasureOptions options;
  options.repetitions = 15;
  std::vector<MeasuredFile> reports;
  std::vector<StepTimes> measured;
  for (int64_t rows : {64, 512, 4096}) {
    const MeasureReport report = measure_on_host(
        plan_of({{Op::all_gather, {"b"}, "S(0)R"}, {Op::exchange, {"a", "b"}, "S(1)R"}}, "S(0)[0]S(0)[1]", {rows, 64}), options);
    const std::string text = write_report(report);
    const auto json = nlohmann::json::parse(text);
    CHECK(keys_ascend(text));
    CHECK(json.at("schema") == "meshplan/report/1");
    CHECK(json.at("redistributions").at(0).at("steps").at(0).at("time").at("samples_ns").size() == 15);
    auto file = read_measured(text, "report.json");
    REQUIRE_MESSAGE(file.ok(), (file.ok() ? "" : file.error().message));
    CHECK(file->rows.size() == 2);
    reports.push_back(*file);
    measured.push_back(report.redistributions[0].steps[0]);
    auto nccl = read_measured(write_nccl_tests_json(report), "nccl.json");
    REQUIRE(nccl.ok());
    CHECK(nccl->rows.size() == 2);
    CHECK(nccl->rows[0].row.size_bytes == file->rows[0].row.size_bytes);
    const auto timeline = nlohmann::json::parse(write_timeline(report));
    CHECK(keys_ascend(write_timeline(report)));
    CHECK(keys_ascend(write_nccl_tests_json(report)));
    CHECK(timeline.at("traceEvents").size() == 3 + 4);
    const std::string table = to_text(report);
    for (const char* word : {"size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong", "predicted", "all_gather", "exchange"}) {
      CHECK(table.find(word) != std::string::npos);
    }
  }
  const auto topology = fitted_to(reports);
  std::vector<double> off;
  size_t i = 0;
  for (int64_t rows : {64, 512, 4096}) {
    Plan plan = plan_of({{Op::all_gather, {"b"}, "S(0)R"}}, "S(0)[0]S(0)[1]", {rows, 64});
    const Mesh& mesh = plan.meshes.meshes[0];
    const PlannedRedistribution& r = plan.redistributions[0];
    const StepCost cost = price_step({&*topology, &mesh, &mesh, &r.request.tensor, std::nullopt, &r.request.src, &r.steps[0]});
    CHECK(cost.tier == "protocols");
    off.push_back(
        std::abs(static_cast<double>(ns_of_ps(cost.predicted_ps)) / static_cast<double>(summarise(measured[i++].samples_ns).median) - 1));
  }
  std::sort(off.begin(), off.end());
  CHECK(off[1] <= 0.10);
}

TEST_CASE("two plans are measured in turns") {
  MeasureOptions options;
  options.repetitions = 9;
  const Plan merged = plan_of({{Op::all_gather, {"a", "b"}, "RR"}}, "S(0)[0]S(0)[1]");
  const Plan apart = plan_of({{Op::all_gather, {"b"}, "S(0)R"}, {Op::all_gather, {"a"}, "RR"}}, "S(0)[0]S(0)[1]");
  auto backend = open_backend("host", {4, {}, 1});
  REQUIRE(backend.ok());
  auto report = measure_against(apart, merged, options, *backend->communicator, *backend->device);
  REQUIRE(report.ok());
  REQUIRE(report->entries.size() == 1);
  CHECK(report->entries[0].first.samples == 9);
  CHECK(report->entries[0].second.samples == 9);
  CHECK(report->entries[0].predicted_first_ns > report->entries[0].predicted_second_ns);
  CHECK(to_text(*report).find("hand: ") != std::string::npos);
  const auto json = nlohmann::json::parse(write_report(*report));
  CHECK(keys_ascend(write_report(*report)));
  CHECK(json.at("against").at("comparison").size() == 1);
  // Its steps are timed too, so that calibration reads both plans' of it.
  const auto file = read_measured(write_report(*report), "against.json");
  REQUIRE_MESSAGE(file.ok(), (file.ok() ? "" : file.error().message));
  REQUIRE(file->rows.size() == 3);
  for (const FoundRow& row : file->rows) {
    CHECK(row.row.op == Op::all_gather);
    CHECK(row.row.samples == 9);
  }
  CHECK(file->rows[0].row.members == std::vector<int64_t>{2});
  CHECK(file->rows[2].row.members == std::vector<int64_t>{4});
  CHECK(settle_rows({*file}, std::nullopt).ok());
}

TEST_CASE("a replay without times is a report too, and calibration says what is missing") {
  const Plan plan = plan_of({{Op::all_gather, {"a", "b"}, "RR"}}, "S(0)[0]S(0)[1]");
  auto replayed = replay_on("host", plan, {});
  REQUIRE(replayed.ok());
  const std::string text = write_report(untimed(plan, {}, *replayed));
  CHECK(nlohmann::json::parse(text).at("redistributions").at(0).at("checked") == 4 * 2048);
  auto file = read_measured(text, "report.json");
  REQUIRE(file.ok());
  auto rows = settle_rows({*file}, std::nullopt);
  REQUIRE_FALSE(rows.ok());
  CHECK(rows.error().message.find("nothing that communicates was timed") != std::string::npos);
}

TEST_CASE("broken reports are refused by place") {
  struct Story {
    std::string text;
    std::string part;
  };
  for (const Story& s : std::vector<Story>{
           {"", "expected a meshplan report"},
           {"[]", "expected a meshplan report"},
           {"{}", "expected a meshplan report"},
           {R"({"schema": "meshplan/report/2"})", "/schema"},
           {R"({"schema": "meshplan/report/1"})", "/redistributions: expected a list"},
           {R"({"schema": "meshplan/report/1", "redistributions": [{}]})", "/redistributions/0/steps"},
           {R"({"schema": "meshplan/report/1", "redistributions": [{"wrong": 3, "steps": []}]})", "the measured data is wrong"},
           {R"({"schema": "meshplan/report/1", "redistributions": [{"steps": [{"op": "dance"}]}]})", "unknown op 'dance'"},
           {R"({"schema": "meshplan/report/1", "redistributions": [{"steps": [{"op": "all_gather", "time": {}}]}]})", "expected level"},
           {R"({"schema": "meshplan/report/1", "redistributions": [{"steps": [{"op": "all_gather", "level": 0, "ranks": 4, "size_bytes": 64,
               "time": {"median_ns": 0, "samples_ns": [0]}}]}]})",
            "/redistributions/0/steps/0/time/median_ns: 0 ns for 64 bytes on 4 ranks is no measured time"},
           {R"({"results": [{"size": 4}]})", "cannot tell which collective"},
           {R"({"args": ["all_reduce_perf"], "results": [{"size": 4}]})", "expected size, and devices"}}) {
    auto file = read_measured(s.text, "x.json");
    REQUIRE_MESSAGE(!file.ok(), s.text);
    CHECK_MESSAGE(file.error().message.find(s.part) != std::string::npos, file.error().message);
    CHECK(file.error().message.rfind("x.json: ", 0) == 0);
  }
  const std::string nccl = R"({"args": ["./build/all_reduce_perf", "-b", "8"], "config": {"devices": [{}, {}, {}, {}]},
    "results": [{"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "-1", "out_of_place": {"time": 12.5}, "actual_iterations": 20}]})";
  auto file = read_measured(nccl, "x.json");
  REQUIRE(file.ok());
  REQUIRE(file->rows.size() == 1);
  CHECK(file->rows[0].row.ns == 12500);
  CHECK(file->rows[0].ranks == 4);
  CHECK(file->rows[0].row.op == Op::all_reduce);
  const std::string at_once = std::string(nccl).replace(nccl.find("12.5"), 4, "0.00");
  file = read_measured(at_once, "x.json");
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().message ==
        "x.json: /results/0/out_of_place/time: 0.00 us for 1024 bytes on 4 ranks is no measured time; measure it again, or leave it out");
}
