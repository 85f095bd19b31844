// check --record: how a command is run so that it records, and what becomes of what it gives.
#include "cli/record_again.h"

#include <doctest/doctest.h>

#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;
using Words = std::vector<std::string>;

Words words(const std::string& command, RecordedBy by = {12}) { return recording_words(command, by, "/t/r.json"); }
Words under_capture(Words before, const Words& after) {
  before.insert(before.end(), {"-m", "meshplan.capture", "--world", "12", "-o", "/t/r.json"});
  before.insert(before.end(), after.begin(), after.end());
  return before;
}
Words by_shell(const std::string& command) { return {"/bin/sh", "-c", command}; }

TEST_CASE("a python command runs its program under meshplan.capture") {
  CHECK(words("python train.py") == under_capture({"python"}, {"train.py"}));
  CHECK(words("/opt/a/python3.11 -u  train.py -m x --steps=3") ==
        under_capture({"/opt/a/python3.11", "-u"}, {"train.py", "-m", "x", "--steps=3"}));
  CHECK(words("python -W ignore -X dev -Wonce::cm -E 'my train.py' \"a b\" c\\ d ''") ==
        under_capture({"python", "-W", "ignore", "-X", "dev", "-Wonce::cm", "-E"}, {"my train.py", "a b", "c d", ""}));
}

TEST_CASE("it is recorded as it was: the rank, tensors and integers that the recording names") {
  const RecordedBy by = recorded_by(R"({"x-recorded": {"world": 96, "rank": 8, "read-integer": 4, "real-tensors": true}})", 12);
  CHECK(words("python a.py", by) == Words{"python", "-m", "meshplan.capture", "--world", "96", "--rank", "8", "--real-tensors",
                                          "--read-integer", "4", "-o", "/t/r.json", "a.py"});
  for (const char* spec : {"{}", "{\"x-recorded\": 1}", "[", "{\"x-recorded\": {\"world\": \"many\"}}"}) {
    CHECK(recorded_by(spec, 12).world == 12);
    CHECK(recorded_by(spec, 12).rank == 0);
  }
}

TEST_CASE("the shell runs every other command as it stands") {
  for (const char* command :
       {"torchrun --nproc-per-node 8 train.py", "python -m torch.distributed.run train.py", "python -c 'import train'", "python -um train",
        "python", "python -u", "A=1 python train.py", "python train.py > log", "cd src && python train.py", "python $HOME/train.py",
        "python \"$HOME/train.py\"", "python 'train.py", "pythonic train.py", "make record", "", "python train.py \\"})
    CHECK_MESSAGE(words(command) == by_shell(command), command);
  CHECK(recording_command("make 'my record'", {12}, "a b.json") == "export MESHPLAN_RECORD='a b.json'; make 'my record'");
  CHECK(recording_command("python t.py 'it'\"'\"'s'", {12}, "r.json") == "python -m meshplan.capture --world 12 -o r.json t.py 'it'\\''s'");
}

TEST_CASE("check records under the name of the committed file, which an overlay extends, and reads stdin once") {
  FakeSystem system;
  system.files["d/rec.json"] = spec;
  system.files["d/step.json"] = R"({"schema": "meshplan/spec/1", "extends": "rec.json"})";
  system.writing.file = spec;
  const Answer answer = run(system, {"check", "d/step.json", "--record", "python a.py", "-W", "no-missing-flatten"});
  CHECK(answer.out == "ok    d/step.json: plans, d/rec.json is what the program does\n");
  CHECK(answer.code == 0);
  CHECK(system.given == Variables{{"MESHPLAN_RECORD", "/tmp/m/rec.json"}});
  CHECK(system.programs.back() == Words{"python", "-m", "meshplan.capture", "--world", "4", "-o", "/tmp/m/rec.json", "a.py"});
  CHECK(run(system, {"check", "-", "--record", "python a.py", "-W", "no-missing-flatten"}, spec).code == 0);
  CHECK(system.writes.empty());
}

TEST_CASE("new counts, ids and meshes are drift; other lines are none") {
  FakeSystem system;
  system.files["s.json"] = spec;
  const auto checked = [&](const std::string& from, const std::string& to) {
    std::string now = spec;
    now.replace(now.find(from), from.size(), to);
    system.writing.file = now;
    return run(system, {"check", "s.json", "--record", "python a.py", "-W", "no-missing-flatten"}).code;
  };
  CHECK(checked("\"count\": 5", "\"count\": 5, \"x-source\": \"a.py:7\"") == 0);
  CHECK(checked("\"count\": 5", "\"count\": 6") == 1);
  CHECK(checked("\"loss\"", "\"lost\"") == 1);
  CHECK(checked("\"size\": 2}", "\"size\": 4}") == 1);
  CHECK(checked("\"P(sum)\", \"P(sum)\"", "\"P(sum)\", \"P(max)\"") == 2);
}

TEST_CASE("--record takes one spec") {
  FakeSystem system;
  system.files["s.json"] = system.files["t.json"] = spec;
  const Answer answer = run(system, {"check", "s.json", "t.json", "--record", "true"});
  CHECK(answer.code == 2);
  CHECK(answer.err.find("--record takes one spec") != std::string::npos);
  CHECK(system.programs.empty());
}

}  // namespace
}  // namespace meshplan
