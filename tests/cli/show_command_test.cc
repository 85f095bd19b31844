// meshplan show: parts of a plan.
#include <doctest/doctest.h>

#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

TEST_CASE("what show writes of some redistributions is a plan by itself") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  // A time that is no whole number of nanoseconds, several times: it is summed up before it is rounded.
  system.files["spec.json"].replace(spec.find("[\"R\", \"S(1)\"]"), 13, "[\"R\", \"S(1)\"], \"count\": 5");
  system.files["spec.json"].replace(spec.find("[8, 8]"), 6, "[8, 101]");
  REQUIRE(run(system, {"plan", "spec.json", "-o", "plan.json", "-q"}).code == 0);
  for (const char* id : {"weights", "loss"}) {
    CAPTURE(id);
    REQUIRE(run(system, {"show", "plan.json", "--id", id, "--format", "json", "-o", "part.json"}).code == 0);
    const Answer verified = run(system, {"verify", "part.json"});
    CHECK_MESSAGE(verified.code == 0, verified.err);
    CHECK(system.files["part.json"].find("\"used_by\": 0") == std::string::npos);
  }
}

}  // namespace
}  // namespace meshplan
