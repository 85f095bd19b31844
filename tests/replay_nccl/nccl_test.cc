// The NCCL backend's own logic over a fake NCCL (fake_nccl.cc): message order, padding, casts, communicators and error paths.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <numeric>

#include "fake_cuda.h"
#include "hand_bundle.h"
#include "hand_made.h"
#include "replay/backend.h"
#include "replay/executor.h"
#include "replay_nccl/cuda_device.h"
#include "replay_nccl/nccl_communicator.h"
#include "replay_nccl/registered_buffers.h"
#include "replay_nccl/shared_gpus.h"
#include "variable.h"
#include "vector_plans.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

int alive() {
  void* library = dlopen(FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  return reinterpret_cast<int (*)()>(dlsym(library, "fake_nccl_alive"))() + static_cast<int>(alive_on_fake_cuda());
}

Result<ReplayReport> replay_fake(const Plan& plan, const ReplayOptions& options = {}, Registration registration = Registration::none,
                                 const char* library = FAKE_NCCL, NcclLibrary::Calls calls = NcclLibrary::Calls::do_not_block) {
  auto nccl = NcclLibrary::load(library);
  REQUIRE_MESSAGE(nccl.ok(), (nccl.ok() ? "" : nccl.error().message));
  std::vector<int32_t> ranks(static_cast<size_t>(rank_count(plan.meshes)));
  std::iota(ranks.begin(), ranks.end(), 0);
  auto device = open_cuda(ranks, 0);
  if (!device) return device.error();
  NcclQuestion question;
  question.nccl = *nccl;
  question.registration = registration;
  question.device = device->get();
  question.world = rank_count(plan.meshes);
  question.global_ids = make_rank_table(plan.meshes).global_ids;
  question.deadline = options.step_deadline;
  question.calls = calls;
  for (const PlannedBundle& bundle : plan.bundles) question.streams = std::max(question.streams, most_in_flight(bundle.rounds));
  auto communicator = open_nccl(question);
  if (!communicator) return communicator.error();
  return replay(plan, options, **communicator, **device);
}

HandPlan small_hand() {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 2}}, {10, 11, 12, 13});
  hand.tensor = {{8, 4}, DType::float32};
  hand.src = "P(sum)S(0)";
  hand.steps = {
      {Op::exchange, {"a", "b"}, "P(sum)S(1)"}, {Op::reduce_scatter, {"a"}, "S(0)S(1)", ReduceOp::sum}, {Op::all_gather, {"b"}, "S(0)R"}};
  return hand;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("every op, dtype, uneven and empty shard is right over NCCL calls") {
  struct Story {
    const char* src;
    std::vector<HandStep> steps;
  };
  const std::vector<Story> stories{
      {"S(0)[0]S(0)[1]", {{Op::all_gather, {"b"}, "S(0)R"}, {Op::all_gather, {"a"}, "RR"}}},
      {"S(0)[0]S(0)[1]", {{Op::all_gather, {"a", "b"}, "RR"}}},
      {"S(0)S(1)", {{Op::all_to_all, {"b"}, "S(0)[0]S(0)[1]"}, {Op::exchange, {"a", "b"}, "S(1)S(0)"}}},
      {"P(sum)P(avg)", {{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum, 3}}},
      {"P(sum)P(sum)", {{Op::reduce_scatter, {"a", "b"}, "S(0)[0]S(0)[1]", ReduceOp::sum}}},
      {"P(max)R", {{Op::reduce_scatter, {"a"}, "S(1)R", ReduceOp::max}}},
      {"P(product)R", {{Op::all_reduce, {"a"}, "RR", ReduceOp::product}}},
      {"P(min)S(0)", {{Op::exchange, {"a", "b"}, "S(1)R", ReduceOp::min}}},
      {"S(0)S(1)", {{Op::exchange, {"a", "b"}, "RR", std::nullopt, 1, 2}}},
  };
  for (const Story& story : stories) {
    for (DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16, DType::float8_e4m3, DType::int64, DType::int16,
                        DType::uint8, DType::boolean}) {
      for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{12, 24}, {10, 7}, {3, 1}}) {
        HandPlan hand;
        hand.table = one_mesh({{"a", 2}, {"b", 3}}, {5, 4, 3, 2, 1, 0});
        hand.tensor = {shape, dtype};
        hand.src = story.src;
        hand.steps = story.steps;
        hand.host_ranks = 3;
        CAPTURE(story.src);
        CAPTURE(to_text(dtype));
        CAPTURE(shape);
        auto report = replay_fake(make_plan(hand));
        REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
        CHECK_MESSAGE(all_right(*report), to_text(*report));
      }
    }
  }
  CHECK(alive() == 0);
}

TEST_CASE("recorded redistributions, reshards and captured training steps on 8 ranks, all planners") {
  for (const auto& [set, at_least] : std::vector<std::pair<std::string, size_t>>{{"vectors", 601}, {"reshard", 190}, {"workloads", 130}}) {
    const auto plans = plans_of_set(set, 8);
    CHECK(plans.size() >= at_least);
    ReplayOptions options;
    options.shrink_above_bytes = int64_t{1} << 20;
    for (const VectorPlan& p : plans) {
      CAPTURE(p.name);
      for (const auto calls : {NcclLibrary::Calls::do_not_block, NcclLibrary::Calls::block}) {
        auto report = replay_fake(p.plan, options, Registration::none, FAKE_NCCL, calls);
        REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
        CHECK_MESSAGE(all_right(*report), to_text(*report));
      }
    }
  }
  CHECK(alive() == 0);
}

namespace {

// What the fake's log says of a gather on a 2x2 mesh, of 6 elements over both dims.
std::vector<std::string> calls_of_a_gather(NcclLibrary::Calls calls) {
  const std::string log = "fake_nccl_calls.log";
  std::remove(log.c_str());
  const Variable to("FAKE_NCCL_LOG", log);
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 2}});
  hand.tensor = {{6}, DType::float32};
  hand.src = "S(0)[0]S(0)[1]";
  hand.steps = {{Op::all_gather, {"b"}, "S(0)R"}};
  auto report = replay_fake(make_plan(hand), {}, Registration::none, FAKE_NCCL, calls);
  REQUIRE(report.ok());
  CHECK(all_right(*report));
  std::vector<std::string> lines = lines_of(log);
  std::remove(log.c_str());
  return lines;
}

}  // namespace

TEST_CASE("the calls: one split a partition for all its groups at once, equal counts as they are, uneven ones padded") {
  const std::vector<std::string> lines = calls_of_a_gather(NcclLibrary::Calls::do_not_block);
  std::vector<std::string> want;
  for (int r = 0; r < 4; ++r) want.push_back("ncclCommInitRankConfig rank " + std::to_string(r) + " of 4");
  for (int r = 0; r < 4; ++r) want.push_back("ncclCommSplit rank " + std::to_string(r) + " colour " + std::to_string(r / 2));
  // 6 over 2x2 is 2, 1, 2, 1: padded to 2 elements of 4 bytes.
  for (int r = 0; r < 4; ++r) want.push_back("ncclAllGather rank " + std::to_string(r) + " of 2 count 8");
  for (int r = 0; r < 8; ++r) want.emplace_back("ncclCommDestroy");
  CHECK(lines == want);
}

TEST_CASE("calls that block are on splits of their own, of all ranks too: no group of NCCL has both kinds") {
  const std::vector<std::string> lines = calls_of_a_gather(NcclLibrary::Calls::block);
  std::vector<std::string> want;
  for (int r = 0; r < 4; ++r) want.push_back("ncclCommSplit rank " + std::to_string(r) + " colour 0 blocking");
  for (int r = 0; r < 4; ++r) want.push_back("ncclCommSplit rank " + std::to_string(r) + " colour " + std::to_string(r / 2) + " blocking");
  CHECK(std::vector<std::string>(lines.begin() + 4, lines.begin() + 12) == want);
  CHECK(std::count(lines.begin(), lines.end(), "ncclCommDestroy") == 12);
  CHECK(alive() == 0);
}

namespace {

// The lines of the fake's log that name one of these functions, over a replay.
std::vector<std::string> calls_of(const Plan& plan, const std::vector<std::string>& functions, Registration registration,
                                  const char* library) {
  const std::string log = "fake_nccl_calls.log";
  std::remove(log.c_str());
  const Variable to("FAKE_NCCL_LOG", log);
  auto report = replay_fake(plan, {}, registration, library);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  CHECK_MESSAGE(all_right(*report), to_text(*report));
  std::vector<std::string> out;
  for (const std::string& line : lines_of(log)) {
    for (const std::string& name : functions) {
      if (line.rfind(name + " ", 0) == 0) out.push_back(line);
    }
  }
  std::remove(log.c_str());
  return out;
}

Plan transposed(std::vector<int64_t> shape) {
  HandPlan hand;
  hand.table = one_mesh({{"a", 2}, {"b", 2}});
  hand.tensor = {std::move(shape), DType::float32};
  hand.src = "S(0)R";
  hand.steps = {{Op::all_to_all, {"a"}, "S(1)R"}};
  return make_plan(hand);
}

}  // namespace

TEST_CASE("all_to_all is ncclAlltoAll where every pair is equal and the library has it, else grouped sends and receives") {
  const std::vector<std::string> functions{"ncclAlltoAll", "ncclSend", "ncclRecv"};
  // 4x4 over 2: every pair has 2x2 float32.
  const auto equal = calls_of(transposed({4, 4}), functions, Registration::none, FAKE_NCCL);
  REQUIRE(equal.size() == 4);
  for (int r = 0; r < 4; ++r) CHECK(equal[static_cast<size_t>(r)] == "ncclAlltoAll rank " + std::to_string(r) + " of 2 count 16");
  // 3 over 2 is 2 and 1: pairs differ.
  const auto uneven = calls_of(transposed({4, 3}), functions, Registration::none, FAKE_NCCL);
  CHECK(uneven.size() == 16);
  CHECK(uneven.front() == "ncclSend rank 0 of 2 count 16 peer 0");
  CHECK(calls_of(transposed({4, 4}), functions, Registration::none, FAKE_NCCL_OLD).front() == "ncclSend rank 0 of 2 count 16 peer 0");
}

TEST_CASE("--register makes every buffer known to every communicator, once, and takes it back before closing it") {
  const std::vector<std::string> local{"ncclCommRegister", "ncclCommDeregister"};
  const auto each = calls_of(transposed({4, 4}), local, Registration::local, FAKE_NCCL);
  // Of each rank: two boxes and the staging of the packed side, in the world and in its group of 2; then back.
  const auto registered = std::count_if(each.begin(), each.end(), [](const auto& line) { return line.rfind("ncclCommRegister", 0) == 0; });
  CHECK(registered > 0);
  CHECK(registered % 8 == 0);
  CHECK(static_cast<size_t>(registered) * 2 == each.size());
  const auto windows =
      calls_of(transposed({4, 4}), {"ncclCommWindowRegister", "ncclCommWindowDeregister"}, Registration::symmetric, FAKE_NCCL);
  CHECK(windows.size() == each.size());
  CHECK(windows.front() == "ncclCommWindowRegister rank 0 of 4 bytes 67108864 symmetric");
  auto refused = replay_fake(transposed({4, 4}), {}, Registration::local, FAKE_NCCL_OLD);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().fault == Fault::environment);
  CHECK(refused.error().message.find("does not support this") != std::string::npos);
  CHECK(alive() == 0);
}

TEST_CASE("of a window every rank brings as much: pieces of different sizes are left out") {
  const std::vector<std::vector<int64_t>> sizes{{64, 64, 128}, {64, 128}, {64, 64}};
  const NcclLibrary nccl = NcclLibrary::load(FAKE_NCCL).value();
  CHECK(RegisteredBuffers(nccl, Registration::symmetric).common(sizes) == std::vector<size_t>{0});
  CHECK(RegisteredBuffers(nccl, Registration::local).common(sizes) == std::vector<size_t>{0, 1, 2});
  // Registered so, uneven boxes are right all the same.
  CHECK_FALSE(calls_of(transposed({3, 3}), {"ncclCommWindowRegister"}, Registration::symmetric, FAKE_NCCL).empty());
}

TEST_CASE("run as one graph of all ranks the data is right too, whatever is packed before a call and unpacked after it") {
  ReplayOptions options;
  options.graph = true;
  for (const Plan& plan : {transposed({4, 4}), transposed({5, 3}), make_plan(small_hand())}) {
    auto report = replay_fake(plan, options);
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
    CHECK_MESSAGE(all_right(*report), to_text(*report));
    auto without = replay_fake(plan);
    REQUIRE(without.ok());
    CHECK(report->redistributions[0].checked == 2 * without->redistributions[0].checked);
  }
  CHECK(alive() == 0);  // NCCL waits for ever to close a communicator whose calls a graph holds
}

TEST_CASE("injected faults are found and named") {
  const Plan plan = make_plan(small_hand());
  for (FaultKind kind : {FaultKind::flip, FaultKind::drop, FaultKind::swap, FaultKind::overrun}) {
    ReplayOptions options;
    options.faults = {{1, 12, kind}};
    auto report = replay_fake(plan, options);
    REQUIRE(report.ok());
    CHECK_FALSE(all_right(*report));
    const RedistributionReport& r = report->redistributions[0];
    if (kind == FaultKind::overrun) {
      CHECK(r.overruns == std::vector<Overrun>{{12, 1}});
    } else {
      REQUIRE_FALSE(r.differences.empty());
      CHECK(r.differences[0].rank == 12);
      CHECK(r.differences[0].step == 1);
    }
  }
}

TEST_CASE("a call that fails ends the run with the step's name, and every communicator is closed") {
  const Plan plan = make_plan(small_hand());
  struct Story {
    std::string fail;
    std::string part;
  };
  for (const Story& s : std::vector<Story>{{"ncclCommInitRankConfig:2", "starting: NCCL says: internal error"},
                                           {"ncclCommSplit:1", "creating communicators: NCCL says"},
                                           {"ncclSend:0", "redistribution 'hand', step 0: NCCL says"},
                                           {"ncclReduceScatter:3", "redistribution 'hand', step 1: NCCL says"},
                                           {"ncclAllGather:0", "redistribution 'hand', step 2: NCCL says"}}) {
    CAPTURE(s.fail);
    // A fresh count of calls for each: the fake counts from the start of the program.
    void* library = dlopen(FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(library != nullptr);
    reinterpret_cast<void (*)()>(dlsym(library, "fake_nccl_forget"))();
    const Variable failing("FAKE_NCCL_FAIL", s.fail);
    auto report = replay_fake(plan);
    REQUIRE_FALSE(report.ok());
    CHECK(report.error().fault == Fault::environment);
    CHECK_MESSAGE(report.error().message.find(s.part) != std::string::npos, report.error().message);
    CHECK(alive() == 0);
  }
}

TEST_CASE("a collective that never ends is given up at its deadline and aborted") {
  void* library = dlopen(FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  reinterpret_cast<void (*)()>(dlsym(library, "fake_nccl_forget"))();
  const Variable stuck("FAKE_NCCL_STUCK", "1");
  ReplayOptions options;
  options.step_deadline = std::chrono::milliseconds(200);
  const auto start = std::chrono::steady_clock::now();
  auto report = replay_fake(make_plan(small_hand()), options);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  REQUIRE_FALSE(report.ok());
  CHECK(report.error().fault == Fault::environment);
  CHECK(report.error().message.find("step 1: rank 10 waited past its deadline") != std::string::npos);
  CHECK(alive() == 0);
}

TEST_CASE("what is missing is named") {
  auto none = NcclLibrary::load("libnccl_that_is_not_there.so.2");
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().fault == Fault::environment);
  CHECK(none.error().message.find("cannot load libnccl_that_is_not_there.so.2") != std::string::npos);
  const Variable old("FAKE_NCCL_VERSION", "22005");
  auto outdated = NcclLibrary::load(FAKE_NCCL);
  REQUIRE_FALSE(outdated.ok());
  CHECK(outdated.error().message.find("is NCCL 2.20.5, 2.28 or newer is required") != std::string::npos);
  const Variable folder("MESHPLAN_BACKENDS", "/nowhere");
  auto module = load_backend("nccl", {});
  REQUIRE_FALSE(module.ok());
  CHECK(module.error().fault == Fault::environment);
  CHECK(module.error().message.find("libmeshplan_replay_nccl.so is not next to the program") != std::string::npos);
}

#ifdef NCCL_MODULE_FOLDER
TEST_CASE("the module, started without a GPU, says so and the exit code is 5") {
  const Variable folder("MESHPLAN_BACKENDS", NCCL_MODULE_FOLDER);
  const Variable library("MESHPLAN_NCCL_LIBRARY", FAKE_NCCL);
  const Variable hidden("CUDA_VISIBLE_DEVICES", "");
  BackendQuestion question;
  question.world = 2;
  auto backend = load_backend("nccl", question);
  REQUIRE_FALSE(backend.ok());
  CHECK(exit_code(backend.error().fault) == 5);
  CHECK_MESSAGE(backend.error().message.find("backend nccl: no GPU") != std::string::npos, backend.error().message);
}
#endif

TEST_CASE("ranks that share GPUs are allowed to, by the means of the NCCL at hand, and none where each has its own or nobody knows") {
  SharedGpusQuestion q;
  q.gpus = {1, 132};
  q.world = 8;
  auto named = [&](const std::string& name) -> std::string {
    const auto variables = variables_of_shared_gpus(q);
    REQUIRE_MESSAGE(variables.ok(), (variables.ok() ? "" : variables.error().message));
    for (const auto& [key, value] : *variables) {
      if (key == name) return value;
    }
    return "none";
  };
  q.nccl_version = 23007;
  CHECK(named("NCCL_MULTI_RANK_GPU_ENABLE") == "1");
  CHECK(named("NCCL_MAX_CTAS") == "4");
  CHECK(named("NCCL_HOSTID") == "none");
  q.streams = 8;  // four in flight, so 64 kernels of 132 multiprocessors in all
  q.world = 16;
  CHECK(named("NCCL_MAX_CTAS") == "2");
  q.world = 34;
  auto many = variables_of_shared_gpus(q);
  REQUIRE_FALSE(many.ok());
  CHECK_MESSAGE(many.error().message.find("34 ranks on 1 GPU have 136 kernels in flight") != std::string::npos, many.error().message);
  q.world = 8;
  q.streams = 1;
  q.nccl_version = 22809;
  auto old = variables_of_shared_gpus(q);
  REQUIRE_FALSE(old.ok());
  CHECK_MESSAGE(
      old.error().message.find("8 ranks on 1 GPU in one process need NCCL 2.30, 2.28.9 is loaded; add --launch 8") != std::string::npos,
      old.error().message);
  q.rendezvous.launcher = "meshplan";
  q.rendezvous.processes = q.rendezvous.locals = 8;
  q.rendezvous.process = 3;
  CHECK(named("NCCL_HOSTID") == "meshplan-3");
  CHECK(named("NCCL_MULTI_RANK_GPU_ENABLE") == "none");
  q.gpus.gpus = 4;  // two ranks each
  CHECK(named("NCCL_MAX_CTAS") == "4");
  q.gpus.gpus = 8;
  CHECK(variables_of_shared_gpus(q)->empty());
  q.gpus.gpus = 1;
  q.rendezvous.locals = 0;  // perhaps on other machines, or each with a GPU of its own to see
  CHECK(variables_of_shared_gpus(q)->empty());
}

TEST_CASE("ranks are found in the order of the launchers") {
  std::map<std::string, std::string> variables;
  auto find = [&] {
    return find_rendezvous([&](const char* name) -> std::optional<std::string> {
      auto at = variables.find(name);
      return at == variables.end() ? std::nullopt : std::optional<std::string>(at->second);
    });
  };
  CHECK(find()->processes == 1);
  variables = {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}};
  CHECK_FALSE(find().ok());  // nowhere to meet
  variables["MASTER_ADDR"] = "node0";
  variables["MASTER_PORT"] = "29500";
  CHECK(find()->launcher == "torchrun");
  CHECK(find()->address == "node0:29500");
  CHECK(find()->local == 1);
  variables["SLURM_PROCID"] = "5";
  variables["SLURM_NTASKS"] = "8";
  CHECK(find()->launcher == "Slurm");
  CHECK(find()->process == 5);
  variables["OMPI_COMM_WORLD_RANK"] = "2";
  variables["OMPI_COMM_WORLD_SIZE"] = "4";
  CHECK(find()->launcher == "Open MPI");
  variables["MESHPLAN_RANK"] = "1";
  variables["MESHPLAN_RANKS"] = "2";
  variables["NCCL_COMM_ID"] = "127.0.0.1:4000";
  CHECK(find()->launcher == "meshplan");
  CHECK(find()->locals == 0);
  variables["MESHPLAN_LOCAL_RANKS"] = "2";
  CHECK(find()->locals == 2);
  CHECK(find()->address == "127.0.0.1:4000");
  variables["MESHPLAN_RANK"] = "2";
  CHECK_FALSE(find().ok());
}
