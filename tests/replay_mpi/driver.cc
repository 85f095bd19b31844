// Started on every process, by mpirun or as tests/replay_nccl/on_gpu does it: replays several plans, or one with a fault. See CMakeLists.txt for the scenarios.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "hand_bundle.h"
#include "hand_made.h"
#include "measure/measure.h"
#include "measure/measured_file.h"
#include "replay/executor.h"
#include "replay_host/open_backend.h"
#include "vector_plans.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

// mpi, or what MESHPLAN_TEST_BACKEND says.
std::string backend_name = "mpi";
bool measures = false;  // MESHPLAN_TEST_MEASURES: NCCL's calls block
constexpr int64_t most_streams_of_plans = 4;

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
    apart.steps = {{Op::exchange, {"y"}, "S(1)", ReduceOp::sum, 1, 1, false, "serve"},
                   {Op::all_gather, {"y"}, "R", std::nullopt, 1, 1, false, "serve"}};
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

// NCCL's communicators take long to make, so plans of one number of ranks share them; MPI's are made for each plan anew.
Result<ReplayReport> replay_one(const Plan& plan, const ReplayOptions& options, std::map<int64_t, Backend>& opened) {
  if (backend_name != "nccl") return replay_on(backend_name, plan, options);
  auto question = backend_question(backend_name, plan, options);
  if (!question) return question.error();
  auto known = opened.find(question->world);
  if (known == opened.end()) {
    question->streams = most_streams_of_plans;
    question->measures = measures;
    auto backend = open_backend(backend_name, *question);
    if (!backend) return backend.error();
    known = opened.emplace(question->world, std::move(*backend)).first;
  }
  return replay(plan, options, *known->second.communicator, *known->second.device);
}

int replay_all(const std::vector<Plan>& plans, const ReplayOptions& options = {}) {
  int64_t checked = 0;
  std::map<int64_t, Backend> opened;
  for (const Plan& plan : plans) {
    auto report = replay_one(plan, options, opened);
    if (!report || !all_right(*report)) {
      if (is_root_process()) std::fprintf(stderr, "%s\n", plan.digest.c_str());
      return finish(report);
    }
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
  auto backend = open_backend(backend_name, {4, {10, 11, 12, 13}, 1});
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
  auto measured = read_measured(write_report(*report), "report.json");
  if (!measured) return finish(measured.error());
  if (measured->rows.size() != 3) return wrong("measured rows");
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

// Syncs of all kinds between two meshes that share no process, in schedules of one stream to three, small rounds and large ones.
int replay_bundles(int64_t n) {
  std::vector<Plan> plans;
  std::mt19937 random(4711);
  for (int round = 0; round < 12; ++round) {
    const int64_t serve = std::max<int64_t>(1, n / 2 - round % 2);
    Plan plan = sync_plan(n - serve, serve);
    const Scheduling how{1 + round % 7, 1 + round % 3, 1 + round % 5};
    plan.bundles.push_back(schedule(plan, "sync", all_members(plan), how, random));
    plans.push_back(std::move(plan));
  }
  return replay_all(plans);
}

// 50 small weights, from half of the processes to the other half: as one bundle, and one by one in the same run.
int measure_bundle_and_members(int64_t n) {
  const MeshTable table = train_and_serve(n / 2, n / 2);
  Plan plan = plan_of(member(table, "train", "serve", {256, 64}, DType::bfloat16, "S(0)", {onto("serve", "y", "S(1)")}), "weights.*.q", 25);
  add_member(plan, member(table, "train", "serve", {96, 40}, DType::float32, "S(1)", {onto("serve", "y", "S(0)")}), "weights.*.k", 15);
  add_member(plan, member(table, "train", "serve", {500}, DType::bfloat16, "R", {onto("serve", "y", "R")}), "norm", 10);
  PlannedBundle bundle;
  bundle.request.id = "sync";
  bundle.request.members = {0, 1, 2};
  bundle.tensors = 50;
  bundle.rounds.emplace_back();
  for (size_t m = 0; m < 3; ++m) bundle.rounds[0].parts.push_back({m, 0, 0, plan.redistributions[m].request.count});
  plan.bundles.push_back(bundle);
  const auto question = backend_question(backend_name, plan, {});
  if (!question) return finish(question.error());
  auto backend = open_backend(backend_name, *question);
  if (!backend) return finish(backend.error());
  MeasureOptions options;
  options.alone = true;
  options.replay.full_size = true;
  auto report = measure(plan, options, *backend->communicator, *backend->device);
  if (!report) return finish(report.error());
  const BundleTimes& times = report->bundles.at(0);
  if (is_root_process()) std::printf("%s", to_text(*report).c_str());
  if (!all_right(replay_part(*report)) || times.replay.checked == 0) return finish(replay_part(*report));
  const auto n_samples = static_cast<size_t>(options.repetitions);
  if (times.samples_ns.size() != n_samples || times.alone_samples_ns.size() != n_samples ||
      times.waves.at(0).samples_ns.size() != n_samples) {
    std::fprintf(stderr, "samples are missing\n");
    return 4;
  }
  const int64_t bundled = summarise(times.samples_ns).median;
  const int64_t alone = summarise(times.alone_samples_ns).median;
  if (is_root_process() && alone <= bundled) std::fprintf(stderr, "the bundle is not faster\n");
  return alone > bundled ? 0 : 4;
}

int replay_bundle_with(const std::string& text) {
  Plan plan = sync_plan(2, 2);
  std::mt19937 random(7);
  plan.bundles.push_back(schedule(plan, "sync", {0, 1, 3, 9}, {2, 2, 2}, random));
  ReplayOptions options;
  auto fault = parse_fault(text);
  if (!fault) return 2;
  options.faults = {*fault};
  options.only_ids = {"sync"};
  options.step_deadline = std::chrono::seconds(4);
  return finish(replay_on(backend_name, plan, options));
}

int64_t processes() {
  for (const char* name : {"MESHPLAN_RANKS", "OMPI_COMM_WORLD_SIZE"}) {
    if (const char* text = std::getenv(name)) return std::atoll(text);
  }
  return 1;
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
  if (const char* name = std::getenv("MESHPLAN_TEST_BACKEND")) backend_name = name;
  measures = std::getenv("MESHPLAN_TEST_MEASURES") != nullptr;
  const std::string scenario = argc > 1 ? argv[1] : "";
  if (scenario == "plans") return replay_all(hand_plans(argc > 2 ? std::atoll(argv[2]) : processes()));
  if (scenario == "set" && argc > 2) {
    std::vector<Plan> plans;
    for (VectorPlan& p : plans_of_set(argv[2], argc > 3 ? std::atoll(argv[3]) : processes())) plans.push_back(std::move(p.plan));
    ReplayOptions options;
    options.shrink_above_bytes = int64_t{1} << 20;
    return replay_all(plans, options);
  }
  if (scenario == "measure") return measure_both();
  if (scenario == "bundles") return replay_bundles(argc > 2 ? std::atoll(argv[2]) : processes());
  if (scenario == "bundle_speed") return measure_bundle_and_members(processes());
  if (scenario == "bundle_fault" && argc > 2) return replay_bundle_with(argv[2]);
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
    return finish(replay_on(backend_name, make_plan(hand), options));
  }
  return 2;
}
