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

TEST_CASE("a plan in a folder whose spec is gone is not passed over") {
  FakeSystem system;
  for (const char* name : {"d/a.json", "d/b.json"}) system.files[name] = spec;
  run(system, {"plan", "d/a.json", "-o", "d/a.plan.json", "-q"});
  run(system, {"plan", "d/b.json", "-o", "d/b.plan.json", "-q"});
  system.files["d/c/other.json"] = system.files["d/b.plan.json"];  // named by no spec
  system.files.erase("d/b.json");
  const Answer answer = run(system, {"check", "d", "-W", "no-missing-flatten", "--junit", "j.xml"});
  CHECK(answer.code == 1);
  CHECK(answer.out == "ok    d/a.json: plans, d/a.plan.json is current\nfails d/b.plan.json: its spec is gone\n");
  CHECK(answer.err.find("error[E0603]: the spec of this plan, d/b.json, is gone") != std::string::npos);
  CHECK(answer.err.find("--> d/b.plan.json") != std::string::npos);
  CHECK(system.files["j.xml"].find("d/b.plan.json") != std::string::npos);
  system.files.erase("d/a.json");
  CHECK(run(system, {"check", "d"}).err.find("no specs in folder d") != std::string::npos);
}

TEST_CASE("a plan that cannot be read is told without planning, with what is wrong with the spec") {
  FakeSystem system;
  system.files["s.json"] = spec;
  const std::string reached = R"("dst": ["R", "R"])";
  const size_t at = spec.find(reached);
  REQUIRE(at != std::string::npos);
  system.files["s.json"].replace(at, reached.size(), R"~("dst": ["P(max)", "R"])~");  // which no plan reaches
  CHECK(run(system, {"check", "s.json"}).code == 3);
  for (const char* text : {"", "{}", "{\"schema\": \"meshplan/plan/1\"}"}) {
    system.files["p.plan.json"] = text;
    const Answer answer = run(system, {"check", "s.json", *text == '\0' ? "none.plan.json" : "p.plan.json"});
    CHECK(answer.code == 2);
    CHECK(answer.out == std::string("fails s.json: ") + (*text == '\0' ? "none" : "p") + ".plan.json cannot be read\n");
  }
  system.files["s.json"] = "{}";
  const Answer both = run(system, {"check", "s.json", "p.plan.json"});
  CHECK(both.out == "fails s.json: bad input, p.plan.json cannot be read\n");
  CHECK(both.err.find("--> s.json") != std::string::npos);
  CHECK(both.err.find("--> p.plan.json") != std::string::npos);
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

TEST_CASE("stdin behind a spec is its plan where it is one, else a spec") {
  FakeSystem system;
  system.files["s.json"] = spec;
  run(system, {"plan", "s.json", "-o", "p.json", "-q"});
  const Answer current = run(system, {"check", "s.json", "-", "-W", "no-missing-flatten"}, system.files["p.json"]);
  CHECK(current.code == 0);
  CHECK(current.out == "ok    s.json: plans, - is current\n");
  const Answer two = run(system, {"check", "s.json", "-", "-W", "no-missing-flatten"}, spec);
  CHECK(two.code == 0);
  CHECK(two.out == "ok    s.json: plans\nok    -: plans\n");
}

}  // namespace
}  // namespace meshplan
