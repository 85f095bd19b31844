// What nccl-tests and NCCL Inspector write: what is read of it, what is refused and where, and that
// any bytes give rows or an error of one line.
#include "measure/measured_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "cost/topology.h"
#include "measure/read_nccl_log.h"

using namespace meshplan;

namespace {

const std::string folder = std::string(MESHPLAN_TESTDATA) + "/network/logs/";

std::string text_of(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(folder + name).rdbuf();
  REQUIRE_MESSAGE(!text.str().empty(), name);
  return text.str();
}

std::vector<std::string> all_logs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".log") != std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

MeasuredFile read(const std::string& text, const std::string& name = "x.log") {
  auto file = read_measured(text, name);
  REQUIRE_MESSAGE(file.ok(), (file.ok() ? "" : file.error().message));
  return *file;
}

std::string refusal(const std::string& text, const std::string& name = "x.log") {
  const auto file = read_measured(text, name);
  REQUIRE_MESSAGE(!file.ok(), text);
  return file.error().message;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("a log of nccl-tests: op, ranks, hosts, sizes and out-of-place times") {
  const MeasuredFile file = read(text_of("all_gather-10x2.log"));
  REQUIRE(file.rows.size() == 10);
  CHECK(file.unused.empty());
  CHECK(file.host_ranks == 2);
  for (const FoundRow& row : file.rows) {
    CHECK(row.row.op == Op::all_gather);
    CHECK(row.ranks == 20);
    CHECK(row.per_host == 2);
    CHECK(row.row.samples == 20);
  }
  CHECK(file.rows[0].row.size_bytes == 33'554'432);
  CHECK(file.rows[0].row.ns == 417'300);
  CHECK(file.rows[0].row.place == "x.log:30");
  // Several logs one after the other, other programs' lines between.
  const MeasuredFile both =
      read("node0: warning\n17 apples\n" + text_of("all_reduce-1x8.log") + "node0:1:2 NCCL INFO x\n" + text_of("sendrecv-10x1.log"));
  REQUIRE(both.rows.size() == 20);
  CHECK(both.rows[9].row.op == Op::all_reduce);
  CHECK(both.rows[9].ranks == 8);
  CHECK(both.rows[10].row.op == Op::exchange);
  CHECK(both.rows[10].ranks == 10);
  CHECK(both.rows[10].per_host == 1);
  CHECK(both.host_ranks == 8);
}

TEST_CASE("without the program's line the file's name says the op") {
  std::string text = text_of("alltoall-1x8.log");
  text = replaced(text, "# Collective test starting: alltoall_perf\n", "");
  CHECK(read(text, "runs/alltoall_perf.2024.log").rows[0].row.op == Op::all_to_all);
  CHECK(refusal(text, "runs/Tuesday.log").rfind("runs/Tuesday.log:17: cannot tell which collective", 0) == 0);
}

TEST_CASE("what cannot be used is said with its line, what is wrong refused") {
  const std::string log = text_of("all_reduce-1x8.log");
  const std::string first = "    33554432       8388608     float     sum      -1   182.90";
  REQUIRE(log.find(first) != std::string::npos);
  const auto with = [&](const std::string& row) { return replaced(log, first, row); };
  CHECK(refusal(with("    33554432       8388608     float     sum      -1   fast")) == "x.log:18: \"fast\" is not a time in microseconds");
  CHECK(refusal(with("    33554432       8388608     float     sum      -1   -5.0")).rfind("x.log:18: \"-5.0\"", 0) == 0);
  CHECK(refusal(with("99999999999999999999       8388608     float     sum      -1   182.90")).rfind("x.log:18: expected size", 0) == 0);
  CHECK(refusal(replaced(log, "       0   182.90", "       3   182.90")).find(":18: the measured data is wrong") != std::string::npos);
  CHECK(refusal(log.substr(0, log.find("# Using")) + log.substr(log.find("#\n#   "))).find("no line \"#  Rank 0") != std::string::npos);
  // Bytes that moved in no time.
  const std::string no_time = " us for 33554432 bytes on 8 ranks is no measured time; measure it again, or leave it out";
  for (const std::string time : {"0.00", "0", "0.0004"})
    CHECK(refusal(with("    33554432       8388608     float     sum      -1   " + time)) == "x.log:18: " + time + no_time);
  // Nothing moved, as with fewer elements than ranks.
  const MeasuredFile empty = read(with("           0             0     float     sum      -1   18.9"));
  CHECK(empty.rows.size() == 9);
  REQUIRE(empty.unused.size() == 1);
  CHECK(empty.unused[0].place == "x.log:18");
  const MeasuredFile other = read(replaced(log, "starting: all_reduce_perf", "starting: broadcast_perf"));
  CHECK(other.rows.empty());
  CHECK(other.unused[0].count == 10);
  CHECK(other.unused[0].why == "broadcast_perf measures an op that plans do not use");
  // Hosts that hold different numbers of ranks.
  const MeasuredFile uneven = read(replaced(log, "Pid  41000 on     node00", "Pid  41000 on     node01"));
  CHECK(uneven.rows.empty());
  CHECK(uneven.unused[0].why == "hosts have different numbers of the group's ranks");
  const std::string expected =
      "x.log: expected a meshplan report, or the text or the JSON of an nccl-tests program, or NCCL Inspector's records, not ";
  const std::string advice = "; meshplan run PLAN --measure --report FILE writes a report";
  CHECK(refusal("") == expected + "an empty file" + advice);
  CHECK(refusal("[1]\n") == expected + "a text that begins with \"[1]\"" + advice);
  CHECK(refusal("{}") == expected + "an empty object" + advice);
  CHECK(refusal(R"({"levels": [], "name": "h100"})") == expected + "an object with \"levels\", \"name\"" + advice);
  CHECK(refusal(R"({"schema": "meshplan/plan/1"})") == expected + "a plan" + advice);
  CHECK(refusal("{ // mine\n \"schema\": \"meshplan/spec/1\"}") == expected + "a spec" + advice);
  CHECK(refusal("// mine\n{\"schema\": \"meshplan/spec/1\"}") == expected + "a spec" + advice);
  CHECK(refusal(R"({"schema": "meshplan/diff/1"})") == "x.log: /schema: expected \"meshplan/report/1\", not \"meshplan/diff/1\"");
  CHECK(refusal("{\"a\": }").rfind("x.log: not JSON: ", 0) == 0);
}

TEST_CASE("NCCL Inspector's records: sizes as nccl-tests counts, the rank that waited least") {
  const MeasuredFile file = read(text_of("inspector-1x8.jsonl"), "i.jsonl");
  REQUIRE(file.rows.size() == 30);
  CHECK(file.host_ranks == 8);
  for (const FoundRow& row : file.rows) CHECK(row.ranks == 8);
  CHECK(file.rows[0].row.op == Op::all_reduce);
  CHECK(file.rows[0].row.size_bytes == 33'554'432);
  CHECK(file.rows[0].row.ns == 183'000);
  CHECK(file.rows[10].row.op == Op::all_gather);
  CHECK(file.rows[10].row.size_bytes == 33'554'432);
  CHECK(file.rows[10].row.place == "i.jsonl:21");
  REQUIRE(file.unused.size() == 2);
  CHECK(file.unused[0].place == "i.jsonl:61");
  CHECK(file.unused[0].why == "collectives that plans do not use");
  const std::string text = text_of("inspector-1x8.jsonl");
  CHECK(refusal(text + "{\"header\": {\"id\"", "i.jsonl").rfind("i.jsonl:63: not JSON: ", 0) == 0);
  CHECK(refusal(replaced(text, "\"n_ranks\":8", "\"n_ranks\":\"8\""), "i.jsonl").rfind("i.jsonl:1: /header/n_ranks: ", 0) == 0);
  CHECK(refusal(replaced(text, "\"coll_exec_time_us\":", "\"exec\":"), "i.jsonl").rfind("i.jsonl:1: ", 0) == 0);
  const size_t time = text.find("\"coll_exec_time_us\":") + 20;
  CHECK(
      refusal(text.substr(0, time) + "0.00" + text.substr(text.find_first_of(",}", time)), "i.jsonl") ==
      "i.jsonl:1: /coll_perf/coll_exec_time_us: 0.00 us for 33554432 bytes on 8 ranks is no measured time; measure it again, or leave it out");
  const MeasuredFile host_clock = read(replaced(text, "kernel_gpu", "collective_cpu"), "i.jsonl");
  CHECK(host_clock.unused[0].why == "times by the host's clock, not the GPU's");
}

TEST_CASE("hosts of the logs are the levels, and racks whose hosts share links are one unit") {
  const auto rows = settle_rows({read(text_of("all_reduce-1x8.log")), read(text_of("all_reduce-10x2.log"))}, std::nullopt);
  REQUIRE(rows.ok());
  REQUIRE(rows->base.levels.size() == 2);
  CHECK(rows->base.levels[0].ranks == 8);
  CHECK(rows->rows[0].members == std::vector<int64_t>{8, 8});
  CHECK(rows->rows[10].members == std::vector<int64_t>{2, 20});
  CHECK(settle_rows({read(text_of("all_reduce-1x8.log"))}, std::nullopt)->base.levels.size() == 1);
  Topology racks;
  racks.levels = {{"nvlink", 72, 1, 1, 1, 100}, {"ib", 1'048'576, 1, 1, 1, 100}};
  std::string text = text_of("all_reduce-10x2.log");
  CHECK(settle_rows({read(text)}, racks)->rows[0].members == std::vector<int64_t>{2, 20});
  text = replaced(text, "NVIDIA H100 80GB HBM3", "NVIDIA GB200");
  CHECK(settle_rows({read(text)}, racks)->rows[0].members == std::vector<int64_t>{20, 20});
  CHECK_FALSE(settle_rows({}, racks).ok());
}

TEST_CASE("calibrated on half of a machine's sizes, the other half is predicted") {
  std::vector<MeasuredFile> files;
  for (const std::string& name : all_logs()) files.push_back(read(text_of(name)));
  REQUIRE(files.size() == 15);
  std::string table =
      "Published timings of 10 hosts of 8 H100 (testdata/network/logs), calibrated on all rows and, for\n"
      "the last two columns, on every other size: meshplan calibrate testdata/network/logs/*.log\n\n";
  const auto settled = settle_rows(files, std::nullopt);
  REQUIRE(settled.ok());
  const auto fitted = calibrate(settled->base, settled->rows);
  REQUIRE(fitted.ok());
  CHECK(fitted->all.rows == 150);
  CHECK(fitted->held_out.rows == 60);
  CHECK(fitted->held_out.mean <= 1.05);
  CHECK(fitted->held_out.largest <= 1.5);
  CHECK(fitted->topology.tables.empty());
  table += to_text(*fitted);
  const std::string path = std::string(MESHPLAN_TESTDATA) + "/results/calibrated.txt";
  if (std::getenv("MESHPLAN_RECORD") != nullptr) std::ofstream(path) << table;  // NOLINT
  std::ostringstream recorded;
  recorded << std::ifstream(path).rdbuf();
  CHECK(recorded.str() == table);
}

TEST_CASE("any bytes are rows or an error of one line with a place") {
  std::mt19937_64 random(9);
  const std::vector<std::string> texts{text_of("alltoall-10x1.log"), text_of("inspector-1x8.jsonl"),
                                       R"({"args": ["all_reduce_perf"], "config": {"devices": [{"hostname": "a"}, {"hostname": "a"}]},
                                        "results": [{"size": 1024, "out_of_place": {"time": 12.5}}]})"};
  // clang-format off
  const std::vector<std::string> words{"\n", "#", " 0 ", "-1", "1e400", "nan", "{", "}", "\"", "\xff", std::string(1, '\0'),
                                       "Rank 0 Group 0 Pid", "# size count type time algbw busbw #wrong time",
                                       "9223372036854775808", "[1,", "null"};
  // clang-format on
  for (int round = 0; round < 4'000; ++round) {
    std::string text = texts[random() % texts.size()];
    if (text.size() > 6'000) text.resize(text.rfind('\n', 1 + random() % 6'000) + 1);
    for (size_t edits = random() % 5; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      const size_t length = std::min<size_t>(random() % 30, text.size() - at);
      if (random() % 3 == 0) {
        text.erase(at, length);
      } else if (random() % 2 == 0) {
        text.replace(at, length, words[random() % words.size()]);
      } else {
        text[at] = static_cast<char>(random() % 256);
      }
    }
    CAPTURE(text);
    const auto file = read_measured(text, "f");
    if (file) {
      const auto settled = settle_rows({*file}, std::nullopt);
      if (settled && round % 20 == 0) (void)calibrate(settled->base, settled->rows);
      continue;
    }
    CHECK(file.error().message.rfind("f:", 0) == 0);
    CHECK(file.error().message.find('\n') == std::string::npos);
  }
}
