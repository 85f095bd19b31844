// meshplan run: progress, and processes that it starts.
#include <doctest/doctest.h>

#include "fake_system.h"

namespace meshplan {
namespace {

using namespace test;

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

TEST_CASE(
    "--launch starts the same command without itself, by mpirun or from here, and gives its exit code") {
  FakeSystem system;
  const auto nccl =
      run(system, {"run", "p.json", "--launch", "4", "--backend", "nccl", "--shrink"});
  CHECK(nccl.code == 4);
  CHECK(nccl.err.find("rank number 1 ended with exit code 4") != std::string::npos);
  CHECK(run(system, {"run", "p.json", "--launch=2", "--backend", "mpi"}).code == 5);
  CHECK(system.programs ==
        std::vector<std::vector<std::string>>{
            {"/bin/meshplan", "run", "p.json", "--backend", "nccl", "--shrink", "4 ranks"},
            {"mpirun", "-n", "2", "/bin/meshplan", "run", "p.json", "--backend", "mpi"}});
  CHECK(run(system, {"run", "p.json", "--launch", "2"}).code == 2);
}

}  // namespace
}  // namespace meshplan
