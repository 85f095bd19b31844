// Started by mpirun on every process: replays several plans, or one with a fault. See CMakeLists.txt for the scenarios.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "hand_made.h"
#include "measure/measure.h"
#include "measure/read_report.h"
#include "replay/executor.h"
#include "replay_host/open_backend.h"
#include "vector_plans.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

// The factors of a mesh of n ranks: a x b.
std::pair<int64_t, int64_t> factors(int64_t n) { return n % 2 == 0 && n > 2 ? std::pair{int64_t{2}, n / 2} : std::pair{n, int64_t{1}}; }

// All ops, uneven and empty shards, several dtypes, permuted ranks, copies, meshes in part, across meshes.
std::vector<Plan> hand_plans(int64_t n) {
  std::vector<Plan> plans;
  const auto [a, b] = factors(n);
  std::vector<int64_t> permuted;
  for (int64_t i = 0; i < n; ++i) permuted.push_back((i * 7 + 3) % n + 20);
  if (n % 7 == 0) permuted.clear();
  struct Story {
    const char* src;
    std::vector<HandStep> steps;
  };
  const std::vector<Story> stories{
      {"S(0)[0]S(0)[1]", {{Op::all_gather, {"b"}, "S(0)R"}, {Op::all_gather, {"a"}, "RR"}}},
      {"S(0)[0]S(0)[1]", {{Op::all_gather, {"a", "b"}, "RR"}, {Op::slice, {}, "RS(1)"}}},
      {"S(0)S(1)", {{Op::all_to_all, {"b"}, "S(0)[0]S(0)[1]"}, {Op::exchange, {"a", "b"}, "S(1)S(0)"}}},
      {"P(sum)P(avg)", {{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum, b}}},
      {"P(sum)P(sum)", {{Op::reduce_scatter, {"a", "b"}, "S(0)[0]S(0)[1]", ReduceOp::sum}}},
      {"P(avg)S(1)", {{Op::reduce_scatter, {"a"}, "S(0)S(1)", ReduceOp::avg}, {Op::all_gather, {"b"}, "S(0)R"}}},
      {"P(max)P(max)", {{Op::all_reduce, {"b"}, "P(max)R", ReduceOp::max}, {Op::all_reduce, {"a"}, "RR", ReduceOp::max}}},
      {"P(product)R", {{Op::reduce_scatter, {"a"}, "S(1)R", ReduceOp::product}}},
      {"P(min)R", {{Op::slice, {}, "P(min)S(0)"}, {Op::all_reduce, {"a"}, "RS(0)", ReduceOp::min}}},
      {"P(sum)S(0)", {{Op::exchange, {"a", "b"}, "S(1)R", ReduceOp::sum}}},
      {"S(0)S(1)", {{Op::exchange, {"a", "b"}, "RR", std::nullopt, 1, 2}}},
      {"S(0)S(1)", {{Op::exchange, {"a", "b"}, "RR", std::nullopt, 1, 2, false, "", 3}}},
      {"RR", {{Op::to_partial, {"a"}, "P(sum)R"}, {Op::all_reduce, {"a"}, "RR", ReduceOp::sum}, {Op::to_partial, {"b"}, "RP(avg)"}}},
  };
  for (const Story& story : stories) {
    for (DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::float8_e5m2, DType::int64, DType::boolean}) {
      for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{16, 24}, {10, 7}, {3, 1}}) {
        HandPlan hand;
        hand.table = one_mesh({{"a", a}, {"b", b}}, shape[0] == 10 ? permuted : std::vector<int64_t>{});
        hand.tensor = {shape, dtype};
        hand.src = story.src;
        hand.steps = story.steps;
        hand.host_ranks = 2;
        if (dtype == DType::bfloat16 && shape[0] == 16) hand.reduce_dtype = DType::float32;
        plans.push_back(make_plan(hand));
      }
    }
  }
  if (n % 2 == 0) {
    MeshTable table;
    (void)add_root(table, "root", n, {}, {{"x", 2}, {"y", n / 2}});
    (void)add_slice(table, "rows", "root", {"x"});
    (void)add_slice(table, "columns", "root", {"y"});
    HandPlan hand;
    hand.table = table;
    hand.src_mesh = "rows";
    hand.dst_mesh = "columns";
    hand.tensor = {{11, 6}, DType::float16};
    hand.src = "S(0)";
    hand.steps = {{Op::exchange, {"y"}, "S(1)", std::nullopt, 1, 1, false, "columns"}};
    plans.push_back(make_plan(hand));
    hand.dst_mesh = "";
    hand.src_mesh = "columns";  // every copy at once
    hand.src = "P(sum)";
    hand.steps = {{Op::all_reduce, {"y"}, "R", ReduceOp::sum}};
    plans.push_back(make_plan(hand));
    // Two universes that share no rank: half of the processes each, so that what one does within itself has no part for the others.
    std::vector<int64_t> others;
    for (int64_t i = n; i-- > n / 2;) others.push_back(i);
    MeshTable two;
    (void)add_root(two, "train", n / 2, {}, {{"x", n / 2}});
    (void)add_root(two, "serve", n / 2, others, {{"y", n / 2}});
    HandPlan apart;
    apart.table = two;
    apart.src_mesh = "train";
    apart.dst_mesh = "serve";
    apart.tensor = {{11, 6}, DType::float32};
    apart.src = "P(sum)";
    apart.steps = {{Op::exchange, {"y"}, "S(1)", ReduceOp::sum, 1, 1, false, "serve"}, {Op::all_gather, {"y"}, "R", std::nullopt, 1, 1, false, "serve"}};
    plans.push_back(make_plan(apart));
    // Fetched once a host, shared inside it, chunk by chunk.
    apart.host_ranks = 2;
    apart.src = "S(0)";
    apart.steps = {{Op::exchange, {"y"}, "R", std::nullopt, 1, 2, false, "serve", 4}};
    plans.push_back(make_plan(apart));
    apart.src_mesh = "serve";
    apart.dst_mesh = "";
    apart.src = "S(0)";
    apart.steps = {{Op::all_to_all, {"y"}, "S(1)"}};
    plans.push_back(make_plan(apart));
  }
  return plans;
}

// Prints what there is to say, on the root process, and returns the exit code.
int finish(const Result<ReplayReport>& report) {
  if (!report) {
    if (is_root_process()) std::fprintf(stderr, "%s\n", report.error().message.c_str());
    wait_for_root_output();
    return exit_code(report.error().fault);
  }
  if (is_root_process()) std::printf("%s", to_text(*report).c_str());
  if (!all_right(*report)) {
    std::fflush(stdout);
    wait_for_root_output();
  }
  return all_right(*report) ? 0 : exit_code(Fault::wrong_data);
}

int replay_all(const std::vector<Plan>& plans, const ReplayOptions& options = {}) {
  int64_t checked = 0;
  for (const Plan& plan : plans) {
    auto report = replay_on("mpi", plan, options);
    if (!report || !all_right(*report)) return finish(report);
    checked += checked_elements(*report);
  }
  if (is_root_process()) std::printf("%zu plans, %lld elements, 0 wrong\n", plans.size(), static_cast<long long>(checked));
  return checked > 0 ? 0 : 4;
}

// Measures a plan, and then against another in the same processes; what the reports must hold is checked here.
int measure_both() {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 2}}, {10, 11, 12, 13});
  hand.tensor = {{256, 64}, DType::bfloat16};
  hand.src = "P(sum)S(0)";
  hand.steps = {
      {Op::exchange, {"a", "b"}, "P(sum)S(1)"}, {Op::reduce_scatter, {"a"}, "S(0)S(1)", ReduceOp::sum}, {Op::all_gather, {"b"}, "S(0)R"}};
  const Plan first = make_plan(hand);
  hand.steps = {{Op::reduce_scatter, {"a"}, "S(1)S(0)", ReduceOp::sum}, {Op::exchange, {"a", "b"}, "S(0)R"}};
  const Plan second = make_plan(hand);
  auto backend = open_backend("mpi", {4, {10, 11, 12, 13}, 1});
  if (!backend) return finish(backend.error());
  MeasureOptions options;
  options.repetitions = 5;
  auto report = measure(first, options, *backend->communicator, *backend->device);
  if (!report) return finish(report.error());
  auto wrong = [](const char* what) {
    std::fprintf(stderr, "measured report: %s\n", what);
    return 4;
  };
  const RedistributionTimes& times = report->redistributions.at(0);
  if (times.replay.wrong != 0 || times.replay.checked == 0) return wrong("data");
  if (times.samples_ns.size() != 5 || times.steps.size() != 3) return wrong("samples of the whole");
  for (const StepTimes& step : times.steps) {
    if (step.samples_ns.size() != 5) return wrong("samples of a step");
    if (!(bus_bandwidth(step) > 0)) return wrong("bandwidth");
  }
  int places = 0;
  for (const auto& [key, value] : report->environment) places += key.rfind("process ", 0) == 0 && !value.empty() ? 1 : 0;
  if (places != 4) return wrong("the place of each process");
  auto points = read_report_points(write_report(*report), "report.json");
  if (!points) return finish(points.error());
  if (points->points.size() != 3) return wrong("calibration points");
  auto against = measure_against(first, second, options, *backend->communicator, *backend->device);
  if (!against) return finish(against.error());
  if (against->entries.size() != 1 || against->entries[0].second.samples != 5) return wrong("comparison");
  // Every process holds the same samples: those of the slowest rank.
  std::string samples;
  for (int64_t ns : times.samples_ns) samples += std::to_string(ns) + " ";
  auto all = backend->communicator->tell_all(samples, std::chrono::steady_clock::now() + std::chrono::seconds(20));
  if (!all) return finish(all.error());
  for (const std::string& other : *all) {
    if (other != samples) return wrong("samples differ between processes");
  }
  if (is_root_process()) std::printf("%s%s", to_text(*report).c_str(), to_text(*against).c_str());
  return 0;
}

int64_t processes() {
  const char* text = std::getenv("OMPI_COMM_WORLD_SIZE");
  return text == nullptr ? 1 : std::atoll(text);
}

}  // namespace

int main(int argc, char** argv) {
  // Assertions of the plan makers outside of test cases end the program.
  doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  context.setAssertHandler([](const doctest::AssertData& data) {
    if (!data.m_failed) return;
    std::fprintf(stderr, "%s:%d: %s\n", data.m_file, data.m_line, data.m_expr);
    std::exit(70);
  });
  const std::string scenario = argc > 1 ? argv[1] : "";
  if (scenario == "plans") return replay_all(hand_plans(argc > 2 ? std::atoll(argv[2]) : processes()));
  if (scenario == "set" && argc > 2) {
    std::vector<Plan> plans;
    for (VectorPlan& p : plans_of_set(argv[2], processes())) plans.push_back(std::move(p.plan));
    ReplayOptions options;
    options.shrink_above_bytes = int64_t{1} << 20;
    return replay_all(plans, options);
  }
  if (scenario == "measure") return measure_both();
  if (scenario == "fault" && argc > 2) {
    HandPlan hand;
    hand.table = one_mesh({{"a", 2}, {"b", 2}});
    hand.tensor = {{8, 4}, DType::float32};
    hand.src = "P(sum)S(0)";
    hand.steps = {
        {Op::exchange, {"a", "b"}, "P(sum)S(1)"}, {Op::reduce_scatter, {"a"}, "S(0)S(1)", ReduceOp::sum}, {Op::all_gather, {"b"}, "S(0)R"}};
    ReplayOptions options;
    auto fault = parse_fault(argv[2]);
    if (!fault) return 2;
    options.faults = {*fault};
    options.step_deadline = std::chrono::seconds(2);
    return finish(replay_on("mpi", make_plan(hand), options));
  }
  return 2;
}
