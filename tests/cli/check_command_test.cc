// meshplan check: which specs and plans belong together.
#include <doctest/doctest.h>

#include "fake_system.h"
#include "plan/plan.h"

namespace meshplan {
namespace {

using namespace test;

TEST_CASE("check pairs the specs of a folder with the plans beside them, in stable order") {
  FakeSystem system;
  for (const char* name : {"d/b.json", "d/a.json", "d/c.json"}) system.files[name] = spec;
  run(system, {"plan", "d/a.json", "-o", "d/a.plan.json", "-q"});
  system.files["d/b.plan.json"] = "{}";
  const Answer answer = run(system, {"check", "d", "-W", "no-missing-flatten"});
  CHECK(answer.code == 2);
  CHECK(answer.out ==
        "ok    d/a.json: plans, d/a.plan.json is current\nfails d/b.json: d/b.plan.json cannot be read\nok    d/c.json: plans\n");
}

TEST_CASE("a plan that lists alternatives or an audit is compared with one that lists the same") {
  FakeSystem system;
  system.files["s.json"] = spec;
  // PyTorch's rules take two gathers, of an uneven dim: the audit finds something.
  const auto change = [&](const std::string& from, const std::string& to) {
    system.files["s.json"].replace(system.files["s.json"].find(from), from.size(), to);
  };
  change("[8, 8]", "[10]");
  change(R"~(["S(0)", "S(1)"], "dst": ["R", "S(1)"])~", R"~(["S(0)", "S(0)"], "dst": ["R", "R"])~");
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--audit"}, {"--alternatives", "2"}, {"--audit", "--alternatives", "9"}, {"--audit", "--groups", "any"}}) {
    CAPTURE(more);
    std::vector<std::string> words = {"plan", "s.json", "-o", "s.plan.json", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE(run(system, words).code == 0);
    const Plan plan = read_plan(system.files["s.plan.json"]).value();
    const PlannedRedistribution& first = plan.redistributions[0];
    CHECK(first.audit.size() + first.alternatives.size() > 0);
    words = {"check", "s.json"};
    if (more.back() == "any") words.insert(words.end(), {"--groups", "any"});
    const Answer answer = run(system, words);
    CHECK(answer.out == "ok    s.json: plans, s.plan.json is current\n");
  }
  // What brings it up to date keeps what it lists.
  change("[10]", "[11]");
  const Answer stale = run(system, {"check", "s.json", "--groups", "any"});
  CHECK(stale.code == 1);
  CHECK(stale.err.find("meshplan plan s.json -o s.plan.json --groups any --audit") != std::string::npos);
}

}  // namespace
}  // namespace meshplan
