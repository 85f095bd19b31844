#include "replay_host/launch.h"

#include <doctest/doctest.h>

#include <sstream>

using namespace meshplan;

namespace {

struct Outcome {
  int code = -1;
  std::string messages;
  double seconds = 0;
};

Outcome launch(const std::string& script, int64_t ranks, std::chrono::milliseconds grace = std::chrono::seconds(10)) {
  std::ostringstream messages;
  const auto start = std::chrono::steady_clock::now();
  auto code = launch_ranks({"/bin/sh", "-c", script}, ranks, messages, grace);
  REQUIRE(code.ok());
  return {*code, messages.str(), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

}  // namespace

TEST_CASE("every rank gets its number and a place to meet") {
  const Outcome all = launch(
      "test $MESHPLAN_RANKS = 3 && test $MESHPLAN_LOCAL_RANKS = 3 && test $MESHPLAN_RANK = $MESHPLAN_LOCAL_RANK && test $MESHPLAN_RANK -lt 3 && test -n \"$NCCL_COMM_ID\"",
      3);
  CHECK(all.code == 0);
  CHECK(all.messages.empty());
}

TEST_CASE("the exit code of the rank that failed is the launcher's") {
  const Outcome wrong = launch("test $MESHPLAN_RANK != 1 || exit 4", 3);
  CHECK(wrong.code == 4);
  CHECK(wrong.messages == "rank number 1 ended with exit code 4\n");
  CHECK(launch("test $MESHPLAN_RANK != 1 || exit 99", 2).code == 5);
  const Outcome crash = launch("test $MESHPLAN_RANK != 0 || kill -9 $$", 2);
  CHECK(crash.code == 5);
  CHECK(crash.messages == "rank number 0 was ended by signal 9\n");
  CHECK(launch("exec /no/such/program", 1).code == 5);
}

TEST_CASE("ranks that hang after another failed are stopped and named, also those that ignore being asked") {
  const Outcome hang = launch("test $MESHPLAN_RANK = 0 && exit 5; exec sleep 100", 3, std::chrono::milliseconds(300));
  CHECK(hang.code == 5);
  CHECK(hang.seconds < 20);
  CHECK(hang.messages == "rank number 0 ended with exit code 5\nrank number 1 did not exit: killed\nrank number 2 did not exit: killed\n");
  const Outcome deaf =
      launch("test $MESHPLAN_RANK = 0 && exit 5; trap '' TERM; while true; do sleep 0.1; done", 2, std::chrono::milliseconds(200));
  CHECK(deaf.code == 5);
  CHECK(deaf.seconds < 30);
}

TEST_CASE("a senseless number of ranks is bad usage") {
  std::ostringstream messages;
  CHECK_FALSE(launch_ranks({"/bin/true"}, 0, messages).ok());
}

TEST_CASE("an attached program has its own exit code, what the environment lacks, and a reason where it cannot start") {
  const auto attached = [](const std::string& script) {
    const auto code = run_attached({"/bin/sh", "-c", script}, {{"MESHPLAN_TEST_GIVEN", "7"}, {"PATH", "/nowhere"}});
    REQUIRE(code.ok());
    return *code;
  };
  CHECK(attached("exit 4") == 4);
  CHECK(attached("kill -9 $$") == 137);
  CHECK(attached("exit $MESHPLAN_TEST_GIVEN") == 7);
  CHECK(attached("test \"$PATH\" != /nowhere") == 0);  // what is set holds
  const auto missing = run_attached({"/no/such/program"}, {});
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().fault == Fault::environment);
  CHECK(missing.error().message == "cannot run /no/such/program: No such file or directory");
}
