// meshplan run: progress, and processes that it starts.
#include <doctest/doctest.h>

#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

void write_plan_of_4(FakeSystem& system) {
  system.files["spec.json"] = spec;
  REQUIRE(run(system, {"plan", "spec.json", "-o", "p.json", "-q"}).code == 0);
}

TEST_CASE("a run that lasts shows its progress on a terminal and takes it away") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  CHECK(run(system, {"run", "plan.json"}).err.empty());
  system.terminals = {Stream::err};
  const std::string err = run(system, {"run", "plan.json"}).err;
  CHECK(err.find("replaying loss") != std::string::npos);
  CHECK(err.substr(err.size() - 4) == "\r\x1b[K");
  CHECK(run(system, {"run", "plan.json", "--quiet"}).err.empty());
}

TEST_CASE("options that say nothing together are refused, with what to do") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  const auto refused = [&](std::vector<std::string> more, const std::string& part) {
    more.insert(more.begin(), {"run", "plan.json"});
    const auto outcome = run(system, more);
    CHECK(outcome.code == 2);
    CHECK_MESSAGE(outcome.err.find(part) != std::string::npos, outcome.err);
  };
  refused({"--shrink", "--full-size"}, "mutually exclusive");
  refused({"--graph"}, "needs --backend nccl");
  refused({"--register", "local"}, "needs --backend nccl");
  refused({"--register", "symmetric", "--backend", "mpi"}, "needs --backend nccl");
  CHECK(run(system, {"run", "plan.json", "--register", "none"}).code == 0);
  refused({"--timeline", "t.json"}, "need --measure");
  refused({"--alone"}, "needs --measure");
  refused({"--inject", "0:0:flip", "--measure"}, "omit --measure");
  refused({"--inject", "0:0:flip", "--against", "plan.json"}, "omit --measure, --against");
  system.files["large.json"] = spec;
  system.files["large.json"].replace(spec.find("\"tp\", \"size\": 2"), 15, "\"tp\", \"size\": 4");
  run(system, {"plan", "large.json", "-o", "large.plan.json", "-q"});
  refused({"--against", "large.plan.json"}, "--against large.plan.json: it has 8 ranks, the plan has 4; compare plans for the same ranks");
}

TEST_CASE("a fault that changes nothing is refused, one that does is told by what it did") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  REQUIRE(run(system, {"plan", "spec.json", "-o", "plan.json", "-q"}).code == 0);
  const auto injected = [&](const char* fault, const char* id) { return run(system, {"run", "plan.json", "--id", id, "--inject", fault}); };
  const Answer nothing = injected("0:1:swap", "loss");  // of one element
  CHECK(nothing.code == 2);
  CHECK(nothing.err.find("--inject 0:1:swap: the data of rank 1 after redistribution 'loss', step 0 stays as it is; choose another rank") !=
        std::string::npos);
  CHECK(injected("0:1:swap", "weights").code == 4);
  const Answer overrun = injected("0:1:overrun", "weights");
  CHECK(overrun.code == 4);
  CHECK(overrun.err.find("1 buffer is written past its end") != std::string::npos);
  CHECK(overrun.err.find("0 of") == std::string::npos);
  CHECK(injected("0:1:flip", "weights").err.find("elements are wrong") != std::string::npos);
}

TEST_CASE("--launch starts the same command without itself, by mpirun or from here, and gives its exit code") {
  FakeSystem system;
  write_plan_of_4(system);
  const auto nccl = run(system, {"run", "p.json", "--launch", "4", "--backend", "nccl", "--shrink"});
  CHECK(nccl.code == 4);
  CHECK(nccl.err.find("rank number 1 ended with exit code 4") != std::string::npos);
  CHECK(run(system, {"run", "p.json", "--launch=5", "--backend", "mpi"}).code == 0);
  CHECK(system.programs ==
        std::vector<std::vector<std::string>>{{"/bin/meshplan", "run", "p.json", "--backend", "nccl", "--shrink", "4 ranks"},
                                              {"mpirun", "-n", "5", "/bin/meshplan", "run", "p.json", "--backend", "mpi"}});
  CHECK(run(system, {"run", "p.json", "--launch", "2"}).code == 2);
}

TEST_CASE("--launch with fewer ranks than the plan has, or more than a machine starts, is refused with both numbers before any starts") {
  FakeSystem system;
  write_plan_of_4(system);
  const auto is_refused = [&](const char* ranks, int code, const char* says) {
    for (const char* backend : {"mpi", "nccl"}) {
      const auto refused = run(system, {"run", "p.json", "--launch", ranks, "--backend", backend});
      CHECK(refused.code == code);
      CHECK_MESSAGE(refused.err.find(says) != std::string::npos, refused.err);
    }
  };
  is_refused("3", 5, "the plan needs 4 ranks, --launch starts 3; run it with --launch 4");
  is_refused("99999999999", 2, "--launch 99999999999: expected 1 to 4096 ranks");
  CHECK(system.programs.empty());
  (void)run(system, {"run", "p.json", "--launch", "1", "--backend", "nccl"});  // which plays all ranks
  CHECK(system.programs.size() == 1);
}

TEST_CASE("mpirun may start as root and more ranks than cores, and its own failures are exit 5") {
  FakeSystem system;
  write_plan_of_4(system);
  const auto with_code = [&](int code) {
    system.attached_code = code;
    return run(system, {"run", "p.json", "--launch", "8", "--backend", "mpi"});
  };
  for (const int own : {0, 2, 3, 4, 5, 70}) {
    CHECK(with_code(own).code == own);
    CHECK(with_code(own).err.empty());
  }
  for (const int foreign : {1, 6, 137, 213}) {
    const auto failed = with_code(foreign);
    CHECK(failed.code == 5);
    CHECK(failed.err.find("mpirun -n 8 failed with exit code " + std::to_string(foreign)) != std::string::npos);
  }
  const auto missing = with_code(-1);
  CHECK(missing.code == 5);
  CHECK(missing.err.find("cannot run mpirun; install an MPI") != std::string::npos);
  const auto has = [&](const char* name) {
    return std::any_of(system.given.begin(), system.given.end(), [&](const auto& variable) { return variable.first == name; });
  };
  CHECK(has("OMPI_ALLOW_RUN_AS_ROOT"));
  CHECK(has("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"));
  CHECK(has("OMPI_MCA_rmaps_base_oversubscribe"));
}

}  // namespace
}  // namespace meshplan
