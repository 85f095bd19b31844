// Flags that would change nothing are refused, those that act are not: each is tried beside what it needs and without.
#include "cli/idle_flags.h"

#include <doctest/doctest.h>

#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

struct Files {
  FakeSystem system;
  Files() {
    system.files["spec.json"] = spec;
    system.files["other.json"] = spec;
    system.files["other.json"].replace(spec.find("[8, 8]"), 6, "[8, 16]");
    run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
    run(system, {"plan", "other.json", "-o", "other.plan.json", "-q"});
  }
  void is_refused(const std::vector<std::string>& words, const std::string& says) {
    const Answer answer = run(system, words);
    CAPTURE(says);
    CHECK(answer.code == 2);
    CHECK(answer.out.empty());
    CHECK_MESSAGE(answer.err == "error[E0601]: " + says + "\n\n", answer.err);
  }
  void acts(const std::vector<std::string>& words) {
    const Answer answer = run(system, words);
    CHECK_MESSAGE(answer.code <= 1, answer.err);
  }
};

TEST_CASE("what measures needs a measurement") {
  Files at;
  at.is_refused({"run", "plan.json", "--repeat", "2"}, "--repeat counts measured repetitions: it needs --measure or --against");
  at.is_refused({"run", "plan.json", "--repeat", "2", "--launch", "4", "--backend", "mpi"},
                "--repeat counts measured repetitions: it needs --measure or --against");
  CHECK(at.system.programs.empty());
  at.acts({"run", "plan.json", "--repeat", "2", "--measure"});
  at.acts({"run", "plan.json", "--repeat", "2", "--against", "plan.json"});
  at.is_refused({"run", "plan.json", "--measure", "--against", "plan.json", "--timeline", "t.json"},
                "--timeline and --nccl-tests write the steps of one plan: omit them, or --against");
  at.is_refused({"run", "plan.json", "--measure", "--against", "plan.json", "--alone"},
                "--alone times members of bundles, which --against leaves out: omit one of them");
}

TEST_CASE("--detail, --costs and --top are refused for the formats that show nothing of them, and change the others") {
  Files at;
  at.is_refused({"plan", "spec.json", "--top", "1"},
                "--top has no effect with --format json, the default of plan; omit it, or write --format "
                "text|markdown|html|svg|mermaid|dot|perfetto");
  at.is_refused({"plan", "spec.json", "-o", "p", "--detail", "full"},
                "--detail has no effect with --format json, the default of plan; omit it, or write --format text|markdown|html");
  at.is_refused({"diff", "plan.json", "other.plan.json", "--format", "github", "--costs", "off"},
                "--costs has no effect with --format github; omit it, or write --format text|markdown|html");
  at.acts({"plan", "spec.json", "--costs", "on"});
  const std::vector<std::vector<std::string>> flags = {{"--detail", "summary"}, {"--detail", "full"}, {"--costs", "off"}, {"--top", "1"}};
  for (const char* format : {"json", "text", "markdown", "torch", "svg", "html", "mermaid", "dot", "perfetto"}) {
    const std::vector<std::string> plain = {"show", "plan.json", "--format", format};
    const std::string without = run(at.system, plain).out;
    for (const std::vector<std::string>& flag : flags) {
      CAPTURE(std::string(format) + " " + flag[0]);
      std::vector<std::string> words = plain;
      words.insert(words.end(), flag.begin(), flag.end());
      const Answer with = run(at.system, words);
      if (with.code == 2)
        CHECK(with.err.find(flag[0] + " has no effect with --format " + format) != std::string::npos);
      else if (flag.back() != "full" && !(flag.back() == "summary" && std::string(format) == "html"))
        CHECK(with.out != without);
    }
  }
}

TEST_CASE("flags of planning are refused where only plans are compared") {
  Files at;
  const std::string says =
      " says how specs are planned, and plans are compared as they are; omit it, "
      "or compare the specs";
  at.is_refused({"diff", "plan.json", "other.plan.json", "--topology", "h100"}, "--topology" + says);
  at.is_refused({"diff", "/dev/null", "other.plan.json", "--no-merge"}, "--no-merge" + says);
  at.acts({"diff", "plan.json", "other.json", "--topology", "h100"});
  at.acts({"diff", "spec.json", "other.json", "--topology", "h100", "--planner", "greedy"});
  at.acts({"diff", "--git-driver", "a", "plan.json", "1", "2", "other.plan.json", "3", "4", "--topology", "h100"});
}

TEST_CASE("--quiet with --verbose, and --new-file without git, are refused") {
  Files at;
  at.is_refused({"plan", "spec.json", "-q", "-v"}, "--quiet and --verbose are mutually exclusive; give one");
  at.is_refused({"diff", "plan.json", "other.plan.json", "-N"}, "--new-file is for a file that git does not have yet: it needs --against");
}

}  // namespace
}  // namespace meshplan
