// meshplan check: which specs and plans belong together.
#include <doctest/doctest.h>

#include "fake_system.h"

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

}  // namespace
}  // namespace meshplan
