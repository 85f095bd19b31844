// What every command does with files, and with a bug or too little memory inside.
#include <doctest/doctest.h>

#include <array>

#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

TEST_CASE("an output that is an input or another output is refused before anything is done") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  system.files["topology.json"] = R"({"levels": [{"ranks": 4, "gb_per_s": 1, "latency_ns": 1}]})";
  REQUIRE(run(system, {"plan", "spec.json", "-o", "plan.json", "-q"}).code == 0);
  const auto files = system.files;
  struct Story {
    std::vector<std::string> words;
    std::string part;
  };
  for (const Story& s : std::vector<Story>{
           {{"plan", "spec.json", "-o", "spec.json"}, "--output spec.json would overwrite the input spec.json; write to another file"},
           {{"plan", "spec.json", "--topology", "topology.json", "-o", "topology.json"}, "overwrite the input topology.json"},
           {{"show", "plan.json", "--output=plan.json"}, "overwrite the input plan.json"},
           {{"diff", "plan.json", "spec.json", "-o", "spec.json"}, "overwrite the input spec.json"},
           {{"check", "spec.json", "plan.json", "--junit", "plan.json"}, "--junit plan.json would overwrite the input plan.json"},
           {{"run", "plan.json", "--report", "plan.json"}, "--report plan.json would overwrite the input plan.json"},
           {{"run", "plan.json", "--measure", "--report", "new", "--timeline", "new"}, "--timeline new would overwrite what --report"},
       }) {
    CAPTURE(s.words);
    const Answer answer = run(system, s.words);
    CHECK(answer.code == 2);
    CHECK(answer.err.find("error[E0601]: ") == 0);
    CHECK(answer.err.find(s.part) != std::string::npos);
    CHECK(system.files == files);
  }
}

TEST_CASE("what cannot be written is refused before anything is read or computed") {
  FakeSystem system;
  system.files["spec.json"] = "no spec";
  system.no_folder = "none/p.json";
  const auto refused = run(system, {"plan", "spec.json", "-o", "none/p.json"});
  CHECK(refused.code == 2);
  CHECK_MESSAGE(refused.err.find("cannot write none/p.json") != std::string::npos, refused.err);
  CHECK(refused.err.find("spec.json") == std::string::npos);
  for (const char* flag : {"--report", "--timeline", "--nccl-tests"})
    CHECK(run(system, {"run", "p.json", "--measure", flag, "none/p.json"}).err.find("cannot write none/p.json") != std::string::npos);
}

TEST_CASE("what a spec names is a file that is at hand, and that no output overwrites") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  system.files["levels.json"] = R"({"levels": [{"ranks": 4, "gb_per_s": 1, "latency_ns": 1}]})";
  system.pipes = {"pipe"};
  const auto overlay = [&](const std::string& extended, const std::string& topology) {
    system.files["overlay.json"] =
        R"({"schema": "meshplan/spec/1", "extends": ")" + extended + R"(", "topology": {"file": ")" + topology + "\"}}";
    return "overlay.json";
  };
  struct Story {
    std::string extended, topology, output, part;
  };
  for (const Story& s : std::vector<Story>{
           {"pipe", "levels.json", "new", "cannot read pipe: is a pipe or a device"},
           {"spec.json", "pipe", "new", "cannot read pipe: is a pipe or a device"},
           {"spec.json\\u0000.old", "levels.json", "new", "spec.json\\x00.old: a file name cannot contain a zero byte"},
           {"spec.json", "levels.json\\u0000", "new", "levels.json\\x00: a file name cannot contain a zero byte"},
           {"spec.json", "levels.json", "spec.json", "--output spec.json would overwrite spec.json; write to another file"},
           {"spec.json", "levels.json", "levels.json", "--output levels.json would overwrite levels.json"},
       }) {
    CAPTURE(s.part);
    const std::string name = overlay(s.extended, s.topology);
    const auto files = system.files;
    const Answer answer = run(system, {"plan", name, "-o", s.output});
    CHECK(answer.code == 2);
    CHECK(answer.err.find(s.part) != std::string::npos);
    CHECK(answer.err.find("--> overlay.json:1:") != std::string::npos);
    CHECK(system.files == files);
  }
  CHECK(run(system, {"plan", overlay("spec.json", "levels.json"), "-o", "new"}).code == 0);
}

TEST_CASE("a flag whose value is empty is refused, not taken as absent") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  REQUIRE(run(system, {"plan", "spec.json", "-o", "plan.json", "-q"}).code == 0);
  const auto files = system.files;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"plan", "spec.json", "-o", ""},
                                                                                     {"plan", "spec.json", "--output="},
                                                                                     {"plan", "spec.json", "--topology", ""},
                                                                                     {"show", "plan.json", "-o", ""},
                                                                                     {"diff", "plan.json", "plan.json", "--against", ""},
                                                                                     {"check", "spec.json", "--record", ""},
                                                                                     {"check", "spec.json", "--junit", ""},
                                                                                     {"run", "plan.json", "--report", ""},
                                                                                     {"transfers", "plan.json", "--bundle", ""}}) {
    CAPTURE(words);
    const Answer answer = run(system, words);
    CHECK(answer.code == 2);
    CHECK(answer.err.find("error[E0601]: ") == 0);
    CHECK(answer.out.empty());
    CHECK(system.files == files);
  }
}

TEST_CASE("stdin is read up to the limit that holds for files") {
  FakeSystem system;
  // A stream that never ends and holds nothing but blanks.
  struct Endless : std::streambuf {
    std::array<char, 1 << 16> blanks{};
    size_t given = 0;
    Endless() { blanks.fill(' '); }
    int_type underflow() override {
      given += blanks.size();
      setg(blanks.data(), blanks.data(), blanks.data() + blanks.size());
      return ' ';
    }
  } endless;
  std::istream in(&endless);
  std::ostringstream out;
  std::ostringstream err;
  CHECK(run_cli({"plan", "-"}, system, in, out, err) == 2);
  CHECK(err.str().find("cannot read stdin: larger than the limit of 512 MiB") != std::string::npos);
  CHECK(endless.given < max_input_bytes + (1 << 20));
}

TEST_CASE("a bad file named twice is refused twice and reported once") {
  FakeSystem system;
  system.files["bad.json"] = "{\"schema\": \"meshplan/spec/1\", \"mesh\": {\"dims\": [{\"name\": \"dp\", \"siz\": 2}]}}";
  for (const std::string command : {"diff", "check"}) {
    const Answer answer = run(system, {command, "bad.json", "bad.json"});
    CHECK(answer.code == 2);
    CHECK(answer.err.find("error[E0203]") == 0);
    CHECK(answer.err.find("error[", 1) == std::string::npos);
  }
}

TEST_CASE("a bug inside ends with a sentence and exit 70") {
  FakeSystem system;
  system.broken = true;
  const Answer answer = run(system, {"plan", "spec.json"});
  CHECK(answer.code == 70);
  CHECK(answer.err.find("error[E0699]: this is a bug in meshplan") == 0);
  CHECK(run(system, {"plan", "spec.json", "--diagnostics", "json"}).err.find("{\"code\": \"E0699\"") != std::string::npos);
  CHECK(answer.err.find("the fake is broken") != std::string::npos);
  CHECK(answer.out.empty());
}

TEST_CASE("memory that is not there is no bug: exit 5") {
  FakeSystem system;
  system.full = true;
  const Answer answer = run(system, {"plan", "spec.json"});
  CHECK(answer.code == 5);
  CHECK(answer.err.find("error[E0602]: not enough memory for this request") == 0);
}

}  // namespace
}  // namespace meshplan
