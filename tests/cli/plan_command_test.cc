// meshplan plan: what is written and what is refused, and which options hold.
#include <doctest/doctest.h>

#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

TEST_CASE("plan writes to stdout or to a file, and what it writes is read again") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  const Answer to_stdout = run(system, {"plan", "spec.json", "-q"});
  CHECK(to_stdout.code == 0);
  CHECK(system.writes.empty());
  const Answer to_file = run(system, {"plan", "spec.json", "-o", "plan.json"});
  CHECK(to_file.code == 0);
  CHECK(to_file.out.empty());
  CHECK(system.files["plan.json"] == to_stdout.out);
  CHECK(run(system, {"plan", "-", "-q"}, spec).out == to_stdout.out);
  CHECK(run(system, {"verify", "plan.json"}).code == 0);
  CHECK(run(system, {"verify", "-"}, to_stdout.out).code == 0);
  CHECK(run(system, {"show", "plan.json", "--format", "json"}).out == to_stdout.out);
  CHECK(run(system, {"run", "plan.json"}).code == 0);
  CHECK(run(system, {"diff", "plan.json", "spec.json"}).code == 0);
  CHECK(run(system, {"check", "spec.json", "plan.json"}).code == 0);
}

TEST_CASE("nothing is written when something is wrong") {
  FakeSystem system;
  system.files["bad.json"] = "{\"schema\": \"meshplan/spec/1\", \"mehs\": {}}";
  system.files["spec.json"] = spec;
  system.files["warned.json"] = spec;
  system.files["warned.json"].replace(spec.find("\"tp\", \"size\": 2"), 15, "\"tp\", \"size\": 8");
  struct Story {
    std::vector<std::string> words;
    int code;
  };
  for (const Story& s : std::vector<Story>{
           {{"plan", "bad.json", "-o", "out"}, 2},
           {{"plan", "nowhere.json", "-o", "out"}, 2},
           {{"plan", "spec.json", "-o", "out", "--planner", "gready"}, 2},
           {{"plan", "warned.json", "-o", "out", "-W", "error"}, 1},
           {{"plan", "spec.json", "-o", "out", "--topology", "nowhere.json"}, 2},
           {{"show", "spec.json", "-o", "out"}, 2},
       }) {
    CAPTURE(s.words);
    const Answer answer = run(system, s.words);
    CHECK(answer.code == s.code);
    CHECK(answer.out.empty());
    CHECK(!answer.err.empty());
    CHECK(system.writes.empty());
  }
}

std::string mesh_of(const std::string& sizes) {
  std::string dims;
  std::istringstream list(sizes);
  int64_t n = 0;
  for (std::string size; list >> size; ++n) {
    dims += (n > 0 ? ", " : "") + ("{\"name\": \"d" + std::to_string(n) + "\", \"size\": " + size + "}");
  }
  return R"({"schema": "meshplan/spec/1", "mesh": {"dims": [)" + dims + R"(]}, "redistributions": [
      {"id": "x", "tensor": {"shape": [64], "dtype": "float32"}, "src": ["R", "R"], "dst": ["R", "R"]}]})";
}

TEST_CASE("what would be made of every rank is refused by number before it is made") {
  FakeSystem system;
  system.files["large.json"] = mesh_of("65536 4");
  system.files["largest.json"] = mesh_of("1099511627776 1048576");
  for (const char* name : {"large", "largest"}) {
    REQUIRE(run(system, {"plan", name + std::string(".json"), "-o", name, "-q"}).code == 0);
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{}, {"--measure"}, {"--shrink"}}) {
      std::vector<std::string> words = {"run", name};
      words.insert(words.end(), more.begin(), more.end());
      const Answer ran = run(system, words);
      CHECK(ran.code == 5);
      CHECK(ran.err.find("ranks, the host backend supports at most 65,536; ") != std::string::npos);
    }
  }
  CHECK(run(system, {"run", "large"}).err.find("the plan has 262,144 ranks") != std::string::npos);
  std::string one_group = mesh_of("8192");
  one_group.replace(one_group.find("\"src\""), std::string::npos, R"~("src": ["P(max)"], "dst": ["R"]}]})~");
  system.files["pairs.json"] = one_group;
  REQUIRE(run(system, {"plan", "pairs.json", "--planner", "greedy", "-o", "pairs", "-q"}).code == 0);
  const Answer pairs = run(system, {"run", "pairs"});
  CHECK(pairs.code == 5);
  CHECK(pairs.err.find("groups of 8,192 ranks are 67,108,864 pairs of ranks in total, the host backend supports at most 16,777,216; ") !=
        std::string::npos);
  const Answer mpi = run(system, {"run", "largest", "--backend", "mpi"});
  CHECK(mpi.code == 5);
  CHECK(mpi.err.find("the mpi backend supports at most 1,048,576; ") != std::string::npos);
  for (const char* format : {"text", "json"}) {
    const Answer listed = run(system, {"mesh", "largest.json", "--ranks", "--format", format});
    CHECK(listed.code == 2);
    CHECK(listed.err.find("--ranks is limited to worlds of 1,048,576 ranks, this one has 1,152,921,504,606,846,976; ") !=
          std::string::npos);
    CHECK(run(system, {"mesh", "largest.json", "--rank", "17", "--format", format}).code == 0);
  }
}

TEST_CASE("what is advised can be put into the spec, whatever dims are called") {
  FakeSystem system;
  // With a quote and more that JSON escapes.
  const std::string name = R"~(d<p>&\"'\u0007\\)~";
  const std::string hostile = R"~({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": ")~" + name +
                              R"~(", "size": 8}, {"name": "tp", "size": 8}]}, "redistributions": [{"id": "loss",
    "tensor": {"shape": [], "dtype": "float32"}, "src": ["P(sum)", "P(sum)"], "dst": ["R", "R"], "count": 100000}]})~";
  system.files["spec.json"] = hostile;
  const std::string err = run(system, {"plan", "spec.json", "-o", "plan.json", "--max-groups", "1"}).err;
  const std::string fix = "{\"dims\": [\"" + name + "\", \"tp\"], \"name\": \"" + name + "_tp\"}";
  CHECK_MESSAGE(err.find("help: add to \"flattened\" of \"mesh\": " + fix + "\n") != std::string::npos, err);
  CHECK_MESSAGE(err.find("  " + fix + " on mesh: saves") != std::string::npos, err);
  system.files["spec.json"].replace(hostile.find("]}, \"redis"), 2, "], \"flattened\": [" + fix + "]}");
  CHECK(run(system, {"plan", "spec.json", "-o", "plan.json", "-q"}).err.empty());
  // None is looked for where none may be chosen: the warning alone says that one saves.
  system.files["spec.json"] = hostile;
  CHECK(run(system, {"plan", "spec.json", "-o", "plan.json", "--max-groups", "0"}).err.find("no flatten") == std::string::npos);
}

TEST_CASE("flags beat the options of the spec") {
  FakeSystem system;
  std::string greedy = spec;
  greedy.insert(greedy.rfind('}'), ", \"options\": {\"planner\": \"greedy\", \"rules\": \"dtensor\"}");
  system.files["spec.json"] = greedy;
  const auto planned_by = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"plan", "spec.json", "--format", "text", "-W", "no-missing-flatten"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string out = run(system, words).out;
    const size_t at = out.find("planner ");
    return out.substr(at, out.find(", groups", at) - at);
  };
  CHECK(planned_by({}) == "planner greedy, rules dtensor");
  CHECK(planned_by({"--planner", "optimal"}) == "planner optimal, rules native");
  CHECK(planned_by({"--rules", "native"}) == "planner optimal, rules native");
  CHECK(planned_by({"--planner", "graph"}) == "planner graph, rules dtensor");
}

}  // namespace
}  // namespace meshplan
