// meshplan diff: its questions to git, and as a driver of git diff.
#include <doctest/doctest.h>

#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

TEST_CASE("diff asks git for the old side without a shell") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  system.program_output = system.files["plan.json"];
  CHECK(run(system, {"diff", "plan.json", "--against", "git:main:plans/a;b.json"}).code == 0);
  REQUIRE(system.programs.size() == 1);
  CHECK(system.programs[0] == std::vector<std::string>{"git", "show", "main:./plans/a;b.json"});
  CHECK(run(system, {"diff", "plan.json", "--against", "git:--output=x:plan.json"}).code == 2);
  CHECK(system.programs.size() == 1);
}

TEST_CASE("as a driver of git diff it names the file, shows colours in git's pager and never fails for what a file holds") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  system.files["broken.json"] = "{\"schema\": \"meshplan/plan/1\"";
  const auto driven = [&](const std::string& old_file, const std::string& new_file) {
    return run(system, {"diff", "--git-driver", "a b.json", old_file, "1234", "100644", new_file, "5678", "100644"});
  };
  CHECK(driven("plan.json", "plan.json").out == "meshplan diff a/a b.json b/a b.json\n");
  const std::string added = driven("/dev/null", "plan.json").out;
  CHECK(added.find("\ndearer: 2 redistributions differ of 2\n") != std::string::npos);
  CHECK(added.find('\x1b') == std::string::npos);
  CHECK(driven("plan.json", "/dev/null").out.find("\ncheaper: 2 redistributions differ of 2\n") != std::string::npos);
  const Answer broken = driven("plan.json", "broken.json");
  CHECK(broken.code == 0);
  CHECK(broken.err.find("error[E0104]") == 0);
  CHECK(run(system, {"diff", "--git-driver", "a.json"}).out == "meshplan diff a/a.json b/a.json\nunmerged\n");
  CHECK(run(system, {"diff", "--git-driver", "a", "plan.json", "1", "2", "plan.json", "3", "4", "b", "renamed"}).out ==
        "meshplan diff a/a b/b\n");
  system.variables["GIT_PAGER_IN_USE"] = "true";
  CHECK(driven("/dev/null", "plan.json").out.find("\x1b[1mmeshplan diff") == 0);
  system.variables["NO_COLOR"] = "1";
  CHECK(driven("/dev/null", "plan.json").out == added);
}

TEST_CASE("a plan is one whatever its redistributions are called") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  system.files["spec.json"].replace(system.files["spec.json"].find("\"id\": \"") + 7, 0, "meshplan/spec/read.py: ");
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  REQUIRE(system.files["plan.json"].find("\"id\": \"meshplan/spec/read.py: ") != std::string::npos);
  CHECK(run(system, {"diff", "plan.json", "plan.json"}).code == 0);
  CHECK(run(system, {"diff", "spec.json", "plan.json"}).code == 0);
}

TEST_CASE("a warning that the new spec allows is not new") {
  const auto spec_with = [](const std::string& more, const std::string& allow) {
    return R"({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "a", "size": 2}, {"name": "b", "size": 4}])" + more + "}" + allow +
           R"~(, "redistributions": [{"id": "x", "tensor": {"shape": [16], "dtype": "float32"}, "src": ["P(sum)", "P(sum)"],)~" +
           R"~( "dst": ["R", "R"], "count": 100000}]})~";
  };
  FakeSystem system;
  system.files["a.json"] = spec_with(R"(, "flattened": [{"dims": ["a", "b"]}])", "");
  system.files["b.json"] = spec_with("", "");
  system.files["c.json"] = spec_with("", R"(, "allow": [{"code": "W0301", "reason": "known"}])");
  const Answer warned = run(system, {"diff", "a.json", "b.json", "--fail-on", "warnings"});
  CHECK(warned.code == 1);
  CHECK(warned.out.find("new warning W0301 of 'x'") != std::string::npos);
  const Answer allowed = run(system, {"diff", "a.json", "c.json", "--fail-on", "warnings"});
  CHECK(allowed.code == 0);
  CHECK(allowed.out.find("new warning") == std::string::npos);
}

}  // namespace
}  // namespace meshplan
