// Of flags that change nothing that is said, of those that act nothing is: each is tried beside what it needs and without.
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
  void is_idle(const std::vector<std::string>& words, const std::string& says) {
    const Answer answer = run(system, words);
    CAPTURE(says);
    CHECK(answer.code <= 1);
    CHECK_MESSAGE(answer.err.find("meshplan: " + says + "\n") != std::string::npos, answer.err);
    std::vector<std::string> quietly = words;
    quietly.emplace_back("-q");
    const Answer quiet = run(system, quietly);
    CHECK(quiet.code == answer.code);
    if (answer.out.find("repetitions") == std::string::npos) CHECK(quiet.out == answer.out);
    CHECK(quiet.err.find("no effect") == std::string::npos);
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
    CHECK_MESSAGE(answer.err.find("no effect") == std::string::npos, answer.err);
  }
};

TEST_CASE("what measures needs a measurement") {
  Files at;
  at.is_idle({"run", "plan.json", "--repeat", "2"},
             "--repeat counts measured repetitions and has no effect without --measure or --against");
  at.acts({"run", "plan.json", "--repeat", "2", "--measure"});
  at.acts({"run", "plan.json", "--repeat", "2", "--against", "plan.json"});
  at.is_idle({"run", "plan.json", "--measure", "--against", "plan.json", "--alone"},
             "--alone times members of bundles one by one, which --against does anyhow");
  at.is_refused({"run", "plan.json", "--measure", "--against", "plan.json", "--timeline", "t.json"},
                "--timeline and --nccl-tests write the steps of one plan: omit them, or --against");
}

TEST_CASE("--detail, --costs and --top change the formats that show something of them, and of the others that is said") {
  Files at;
  at.is_idle({"plan", "spec.json", "--top", "1"},
             "--top has no effect with --format json, the default of plan; omit it, or write --format "
             "text|markdown|html|svg|mermaid|dot|perfetto");
  at.is_idle({"plan", "spec.json", "-o", "p", "--detail", "full"},
             "--detail has no effect with --format json, the default of plan; omit it, or write --format text|markdown|html");
  at.is_idle({"diff", "plan.json", "other.plan.json", "--format", "github", "--costs", "off"},
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
      CHECK(with.code == 0);
      if (with.err.find(flag[0] + " has no effect with --format " + format) != std::string::npos)
        CHECK(with.out == without);
      else if (flag.back() != "full" && !(flag.back() == "summary" && std::string(format) == "html"))
        CHECK(with.out != without);
    }
  }
}

TEST_CASE("of flags of planning it is said where only plans are compared") {
  Files at;
  const std::string says = " says how specs are planned, and has no effect on plans; omit it, or compare the specs";
  at.is_idle({"diff", "plan.json", "other.plan.json", "--topology", "h100"}, "--topology" + says);
  at.is_idle({"diff", "/dev/null", "other.plan.json", "--no-merge"}, "--no-merge" + says);
  at.acts({"diff", "plan.json", "other.json", "--topology", "h100"});
  at.acts({"diff", "spec.json", "other.json", "--topology", "h100", "--planner", "greedy"});
  at.acts({"diff", "--git-driver", "a", "plan.json", "1", "2", "other.plan.json", "3", "4", "--topology", "h100"});
}

TEST_CASE("of --new-file without git it is said") {
  Files at;
  at.is_idle({"diff", "plan.json", "other.plan.json", "-N"},
             "--new-file is for a file that git does not have yet, and has no effect without --against");
}

}  // namespace
}  // namespace meshplan
