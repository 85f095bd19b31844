// One process a rank over the fake NCCL, started by `meshplan run --backend nccl --launch N` as a user starts them: data, measuring,
// graphs, and every fault of the list ends every rank in bounded time, with a message that names rank and step, and leaves nothing behind.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace {

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_file(const std::string& file, const std::string& text) { std::ofstream(file) << text; }

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
  std::string left;  // processes and shared memory that stayed
  double seconds = 0;
  [[nodiscard]] bool says(const std::string& part) const { return err.find(part) != std::string::npos; }
  [[nodiscard]] std::string all() const { return "exit " + std::to_string(code) + "\n" + out + err + left; }
};

int shell(const std::string& command) {
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe): tests have one thread
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// meshplan with these arguments and variables ("NAME=value NAME=value").
Outcome run_meshplan(const std::string& arguments, const std::string& variables = "") {
  static int number = 0;
  const std::string name = "nccl_process_" + std::to_string(number++);
  const std::string token = name + "_" + std::to_string(getpid());
  write_file(name + ".stamp", "");
  Outcome outcome;
  const auto start = std::chrono::steady_clock::now();
  outcome.code =
      shell("MESHPLAN_TEST_TOKEN=" + token + " MESHPLAN_BACKENDS=" FAKE_CUDA_BACKEND_FOLDER " MESHPLAN_NCCL_LIBRARY=" FAKE_NCCL " " +
            variables + " " MESHPLAN_PROGRAM " " + arguments + " >" + name + ".out 2>" + name + ".err");
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.out = text_of(name + ".out");
  outcome.err = text_of(name + ".err");
  shell(LEFTOVERS " " + token + " " + name + ".stamp >" + name + ".left");
  outcome.left = text_of(name + ".left");
  for (const char* end : {".stamp", ".out", ".err", ".left"}) std::remove((name + end).c_str());
  return outcome;
}

// A plan of several steps on 4 ranks called 10 to 13.
std::string plan_file() {
  std::string file = "nccl_process.plan.json";
  write_file("nccl_process.json", R"json({"schema": "meshplan/spec/1",
    "mesh": {"dims": [{"name": "a", "size": 2}, {"name": "b", "size": 2}], "ranks": [10, 11, 12, 13]},
    "redistributions": [
      {"id": "hand", "tensor": {"shape": [8, 4], "dtype": "float32"}, "src": ["P(sum)", "S(0)"], "dst": ["R", "S(1)"]},
      {"id": "turn", "tensor": {"shape": [9, 6], "dtype": "bfloat16"}, "src": ["S(0)", "S(1)"], "dst": ["S(1)", "S(0)"]}]})json");
  const Outcome planned = run_meshplan("plan nccl_process.json --planner greedy -q -o " + file);
  REQUIRE_MESSAGE(planned.code == 0, planned.all());
  return file;
}

Outcome run(const std::string& arguments, const std::string& variables = "") {
  return run_meshplan("run " + plan_file() + " --backend nccl --launch 4 " + arguments, variables);
}

// Every rank but the guilty one said this, each in its own name.
void check_survivors(const Outcome& outcome, int guilty, const std::string& part) {
  for (int rank = 10; rank < 14; ++rank) {
    if (rank == guilty) continue;
    bool said = false;
    std::istringstream lines(outcome.err);
    for (std::string line; std::getline(lines, line);) {
      const bool own = line.rfind("meshplan: rank " + std::to_string(rank) + ": ", 0) == 0;
      said = said || (own && line.find(part) != std::string::npos);
    }
    CHECK_MESSAGE(said, "rank " << rank << " did not say '" << part << "': " << outcome.all());
  }
}

}  // namespace

TEST_CASE("a rank a process: every element right, and where each rank runs is printed") {
  const Outcome outcome = run("");
  CHECK_MESSAGE(outcome.code == 0, outcome.all());
  CHECK_MESSAGE(outcome.out.find(" 0 wrong") != std::string::npos, outcome.all());
  CHECK_MESSAGE(outcome.out.find("processes 0-3 on ") != std::string::npos, outcome.all());
  CHECK_MESSAGE(outcome.left.empty(), outcome.left);
}

TEST_CASE("what is left behind is found") {
  write_file("nccl_process.stamp", "");
  // A file of a shared memory that nobody uses, and a process that outlives its shell.
  CHECK(shell("sleep 0.1; MESHPLAN_TEST_TOKEN=nccl_left_behind sleep 20 & echo left >/dev/shm/nccl_left_behind; sleep 0.3; " LEFTOVERS
              " nccl_left_behind nccl_process.stamp >nccl_process.left; kill $!; rm /dev/shm/nccl_left_behind") == 0);
  const std::string left = text_of("nccl_process.left");
  CHECK_MESSAGE(left.find("sleep 20") != std::string::npos, left);
  CHECK_MESSAGE(left.find("file /dev/shm/nccl_left_behind") != std::string::npos, left);
}

TEST_CASE("more ranks than the plan needs stand by, too few are refused") {
  const Outcome more = run_meshplan("run " + plan_file() + " --backend nccl --launch 5");
  CHECK_MESSAGE(more.code == 0, more.all());
  const Outcome few = run_meshplan("run " + plan_file() + " --backend nccl --launch 3");
  CHECK_MESSAGE(few.code == 5, few.all());
  CHECK_MESSAGE(few.says("the plan needs 4 ranks, --launch starts 3; run it with --launch 4"), few.all());
}

TEST_CASE("measured over processes, as steps and as one graph, and calibrated") {
  const Outcome outcome =
      run("--measure --repeat 4 --graph --report nccl_process.report.json --nccl-tests nccl_process.tests.json --timeline "
          "nccl_process.trace.json",
          "FAKE_CUDA_GPUS=4");
  CHECK_MESSAGE(outcome.code == 0, outcome.all());
  const auto report = nlohmann::json::parse(text_of("nccl_process.report.json"));
  for (const auto& r : report.at("redistributions")) {
    CHECK(r.at("wrong") == 0);
    // The graph's run is checked as well: twice the elements.
    CHECK(r.at("checked").get<int64_t>() > 0);
    CHECK(r.at("time").at("samples_ns").size() == 4);
    for (const auto& step : r.at("steps")) CHECK(step.at("time").at("samples_ns").size() == 4);
  }
  CHECK(nlohmann::json::parse(text_of("nccl_process.tests.json")).at("results").size() > 1);
  CHECK(nlohmann::json::parse(text_of("nccl_process.trace.json")).at("traceEvents").size() > 4);
  const Outcome fitted = run_meshplan("calibrate nccl_process.report.json nccl_process.tests.json -o nccl_process.topology.json");
  CHECK_MESSAGE(fitted.code == 0, fitted.all());
  const Outcome planned = run_meshplan("plan nccl_process.json --topology nccl_process.topology.json -q -o nccl_process.again.json");
  CHECK_MESSAGE(planned.code == 0, planned.all());
}

TEST_CASE("two plans in turns, as graphs, each by its own") {
  const std::string plan = plan_file();
  const Outcome cheaper = run_meshplan("plan nccl_process.json --planner optimal -q -o nccl_process.optimal.plan.json");
  REQUIRE_MESSAGE(cheaper.code == 0, cheaper.all());
  const Outcome outcome =
      run_meshplan("run " + plan + " --backend nccl --launch 4 --graph --repeat 3 --against nccl_process.optimal.plan.json");
  CHECK_MESSAGE(outcome.code == 0, outcome.all());
}

TEST_CASE("ranks that share a GPU: right, and the report says that its times mean nothing, so that none is calibrated with") {
  const Outcome outcome = run("--measure --repeat 2 --report nccl_process.shared.json", "FAKE_CUDA_GPUS=3");
  CHECK_MESSAGE(outcome.code == 0, outcome.all());
  CHECK_MESSAGE(outcome.out.find("# times: mean nothing: several ranks share a GPU\n") != std::string::npos, outcome.all());
  const Outcome fitted = run_meshplan("calibrate nccl_process.shared.json -o nccl_process.topology.json");
  CHECK_MESSAGE(fitted.code == 2, fitted.all());
  CHECK_MESSAGE(fitted.says("times that mean nothing: several ranks share a GPU"), fitted.all());
}

namespace {

// A plan of one bundle whose waves have two rounds, exchanges on two streams, from ranks 10 and 11 to 12 and 13.
std::string bundle_file() {
  std::string file = "nccl_process.bundle.plan.json";
  write_file("nccl_process.bundle.json", R"json({"schema": "meshplan/spec/1",
    "topology": {"name": "two levels", "levels": [{"name": "in", "ranks": 2, "gb_per_s": 400, "latency_ns": 1000},
                                                  {"name": "out", "ranks": 4, "gb_per_s": 20, "latency_ns": 2000}]},
    "meshes": [{"name": "train", "world": 2, "ranks": "10-11", "dims": [{"name": "x", "size": 2}]},
               {"name": "serve", "world": 2, "ranks": "12-13", "dims": [{"name": "y", "size": 2}]}],
    "redistributions": [
      {"id": "s.w", "src_mesh": "train", "dst_mesh": "serve", "tensor": {"shape": [641, 512], "dtype": "float32"}, "count": 4,
       "src": ["S(0)"], "dst": ["R"]},
      {"id": "s.v", "src_mesh": "train", "dst_mesh": "serve", "tensor": {"shape": [641, 512], "dtype": "bfloat16"}, "count": 4,
       "src": ["S(0)"], "dst": ["R"]}],
    "bundles": [{"id": "s", "redistributions": ["s.*"], "max_staging_bytes": 6000000}]})json");
  const Outcome planned = run_meshplan("plan nccl_process.bundle.json -q -o " + file);
  REQUIRE_MESSAGE(planned.code == 0, planned.all());
  const auto rounds = nlohmann::json::parse(text_of(file)).at("bundles").at(0).at("rounds");
  REQUIRE(std::any_of(rounds.begin(), rounds.end(), [](const auto& round) { return round.value("stream", 0) == 1; }));
  return file;
}

}  // namespace

TEST_CASE("the rounds of a bundle on two streams: right, and measured beside their predictions") {
  const Outcome outcome =
      run_meshplan("run " + bundle_file() + " --backend nccl --launch 4 --measure --repeat 2 --report nccl_process.bundle.report.json");
  CHECK_MESSAGE(outcome.code == 0, outcome.all());
  CHECK_MESSAGE(outcome.out.find(" 0 wrong") != std::string::npos, outcome.all());
  CHECK_MESSAGE(outcome.out.find("stream 1, ") != std::string::npos, outcome.all());
  const auto report = nlohmann::json::parse(text_of("nccl_process.bundle.report.json"));
  const auto& bundle = report.at("bundles").at(0);
  CHECK(bundle.at("wrong") == 0);
  for (const auto& round : bundle.at("rounds")) CHECK(round.at("predicted_ns").get<int64_t>() > 0);
  for (const auto& wave : bundle.at("waves")) CHECK(wave.at("time").at("samples_ns").size() == 2);
  CHECK_MESSAGE(outcome.left.empty(), outcome.left);
}

TEST_CASE("a rank that ends or hangs in a wave of two rounds is named with a round of it by every other one") {
  for (const auto& [kind, part] : std::vector<std::pair<std::string, std::string>>{
           {"exit", "rank 12 has ended"}, {"hang", "rank 12 did not arrive within the deadline"}}) {
    const Outcome outcome = run_meshplan("run " + bundle_file() + " --backend nccl --launch 4 --deadline 2 --inject 2:12:" + kind);
    CHECK_MESSAGE(outcome.code == 5, outcome.all());
    check_survivors(outcome, 12, part);
    check_survivors(outcome, 12, "bundle 's', round");
    CHECK_MESSAGE(outcome.left.empty(), outcome.left);
  }
}

TEST_CASE("registered buffers, one process a rank") {
  for (const char* kind : {"local", "symmetric"}) {
    const Outcome outcome = run(std::string("--register ") + kind);
    CHECK_MESSAGE(outcome.code == 0, outcome.all());
    CHECK_MESSAGE(outcome.out.find(" 0 wrong") != std::string::npos, outcome.all());
  }
}

TEST_CASE("wrong data is found and named") {
  for (const auto& [kind, part] : std::vector<std::pair<std::string, std::string>>{{"flip", "rank 12, step 1, index"},
                                                                                   {"drop", "rank 12, step 1, index"},
                                                                                   {"swap", "rank 12, step 1, index"},
                                                                                   {"overrun", "rank 12, step 1: written past the end"}}) {
    const Outcome outcome = run("--inject 1:12:" + kind);
    CHECK_MESSAGE(outcome.code == 4, outcome.all());
    CHECK_MESSAGE(outcome.out.find(part) != std::string::npos, outcome.all());
    CHECK_MESSAGE(outcome.seconds < 60, outcome.seconds);
    CHECK_MESSAGE(outcome.left.empty(), outcome.left);
  }
}

TEST_CASE("a rank that differs, or lacks memory, ends all with its name") {
  struct Story {
    std::string fault;
    int code;
    std::string part;
  };
  for (const Story& s : std::vector<Story>{{"0:12:plan", 4, "step 0: the process of rank 12 has different steps"},
                                           {"0:11:version", 5, "step 0: the process of rank 11 has replay version"},
                                           {"1:13:memory", 5, "step 1: rank 13 cannot allocate"}}) {
    CAPTURE(s.fault);
    const Outcome outcome = run("--inject " + s.fault);
    CHECK_MESSAGE(outcome.code == s.code, outcome.all());
    CHECK_MESSAGE(outcome.says(s.part), outcome.all());
    CHECK_MESSAGE(outcome.seconds < 60, outcome.seconds);
    CHECK_MESSAGE(outcome.left.empty(), outcome.left);
  }
}

TEST_CASE("a rank that exits is named by every other one, whether NCCL notices or not") {
  for (const std::string& variables : {std::string(), std::string("FAKE_NCCL_DEAF=1")}) {
    for (int rank : {10, 12}) {
      CAPTURE(variables);
      CAPTURE(rank);
      const Outcome outcome = run("--inject 1:" + std::to_string(rank) + ":exit", variables);
      CHECK_MESSAGE(outcome.code == 5, outcome.all());
      check_survivors(outcome, rank, "step 1: rank " + std::to_string(rank) + " has ended");
      CHECK_MESSAGE(outcome.seconds < 40, outcome.seconds);
      CHECK_MESSAGE(outcome.left.empty(), outcome.left);
    }
  }
}

TEST_CASE("a rank that dies within a collective is named too") {
  for (const std::string& variables : {std::string(), std::string("FAKE_NCCL_DEAF=1 ")}) {
    CAPTURE(variables);
    // Its first calls are those of the start: the number of what comes after is the same on every rank.
    const Outcome outcome = run("", variables + "FAKE_NCCL_DIE=2:2");
    CHECK_MESSAGE(outcome.code == 5, outcome.all());
    check_survivors(outcome, 12, "rank 12 has ended");
    CHECK_MESSAGE(outcome.says("redistribution 'hand', step "), outcome.all());
    CHECK_MESSAGE(outcome.seconds < 40, outcome.seconds);
    CHECK_MESSAGE(outcome.left.empty(), outcome.left);
  }
}

TEST_CASE("where steps are measured their calls block, and a rank that ends or dies is named all the same") {
  const Outcome right = run("--measure --repeat 2 --report nccl_process.report.json");
  CHECK_MESSAGE(right.code == 0, right.all());
  CHECK_MESSAGE(text_of("nccl_process.report.json").find("blocking, as those of most programs") != std::string::npos, right.all());
  // In timed turns, which have more calls than the checked one: of steps, and of the barriers between them.
  int in_steps = 0;
  for (int call = 8; call < 20; ++call) {
    CAPTURE(call);
    const Outcome died =
        run("--measure --repeat 3", (call % 2 == 0 ? "FAKE_NCCL_DEAF=1 " : "") + ("FAKE_NCCL_DIE=2:" + std::to_string(call)));
    CHECK_MESSAGE(died.code == 5, died.all());
    check_survivors(died, 12, "rank 12 has ended");
    in_steps += died.says("redistribution 'hand', step ") ? 1 : 0;
    CHECK_MESSAGE(died.seconds < 40, died.seconds);
    CHECK_MESSAGE(died.left.empty(), died.left);
  }
  CHECK(in_steps > 2);
}

TEST_CASE("a rank that hangs is named by every other one at the deadline, and ended") {
  for (int rank : {10, 12}) {
    CAPTURE(rank);
    const Outcome outcome = run("--deadline 2 --inject 1:" + std::to_string(rank) + ":hang");
    CHECK_MESSAGE(outcome.code == 5, outcome.all());
    check_survivors(outcome, rank, "step 1: rank " + std::to_string(rank) + " did not arrive within the deadline");
    CHECK_MESSAGE(outcome.says("rank number " + std::to_string(rank - 10) + " did not exit: killed"), outcome.all());
    CHECK_MESSAGE(outcome.seconds < 60, outcome.seconds);
    CHECK_MESSAGE(outcome.left.empty(), outcome.left);
  }
}

TEST_CASE("a rank that hangs where steps are timed, or within a call, is named by every other one with the place") {
  for (const auto& [guilty, call] : {std::pair{0, 9}, std::pair{2, 2}, std::pair{2, 10}}) {
    CAPTURE(guilty);
    CAPTURE(call);
    const std::string rank = "rank " + std::to_string(10 + guilty);
    const Outcome outcome =
        run("--measure --repeat 3 --deadline 2", "FAKE_NCCL_HALT=" + std::to_string(guilty) + ":" + std::to_string(call));
    CHECK_MESSAGE(outcome.code == 5, outcome.all());
    check_survivors(outcome, 10 + guilty, ": " + rank + " did not arrive within the deadline");
    CHECK_MESSAGE(outcome.says("redistribution 'hand', "), outcome.all());
    CHECK_MESSAGE(outcome.seconds < 40, outcome.seconds);
    CHECK_MESSAGE(outcome.left.empty(), outcome.left);
  }
}

TEST_CASE("a process that never comes: the others say so and end") {
  const std::string alone = "NCCL_COMM_ID=127.0.0.1:1 MESHPLAN_RANK=0 MESHPLAN_RANKS=4 MESHPLAN_LOCAL_RANK=0";
  const Outcome outcome = run_meshplan("run " + plan_file() + " --backend nccl --deadline 1", alone);
  CHECK_MESSAGE(outcome.code == 5, outcome.all());
  CHECK_MESSAGE(outcome.says("starting: rank 10 waited past its deadline"), outcome.all());
  CHECK_MESSAGE(outcome.seconds < 30, outcome.seconds);
}
