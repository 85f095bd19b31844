// The star of connections beside NCCL, with callers that are no processes of the run.
#include "replay_nccl/control.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <iomanip>
#include <sstream>
#include <thread>

using namespace meshplan;

namespace {

using Clock = std::chrono::steady_clock;

// The processes of a run as threads of this one; the others call when they are told to.
struct Run {
  int64_t processes;
  std::promise<std::string> word;
  std::shared_future<std::string> known = word.get_future().share();
  std::future<Result<std::unique_ptr<Control>>> leader;

  explicit Run(std::chrono::milliseconds introduction, int64_t count = 2) : processes(count) {
    leader = std::async(std::launch::async, [this, introduction] { return Control::open(question(0, introduction)); });
  }

  Control::Question question(int64_t process, std::chrono::milliseconds introduction) {
    Control::Question q;
    q.process = process;
    q.processes = processes;
    q.host = "127.0.0.1";
    q.rank_text = [](int64_t p) { return "rank " + std::to_string(p); };
    q.deadline = Clock::now() + std::chrono::seconds(20);
    q.introduction = introduction;
    q.share = [this, process](const std::string& text) -> Result<std::string> {
      if (process == 0) word.set_value(text);
      return known.get();
    };
    return q;
  }

  [[nodiscard]] uint16_t port() const {
    const std::string text = known.get();
    return static_cast<uint16_t>(static_cast<unsigned char>(text[0]) | static_cast<unsigned char>(text[1]) << 8);
  }

  // The other process comes, and both say something.
  void finish() {
    auto follower = Control::open(question(1, std::chrono::seconds(10)));
    REQUIRE(follower.ok());
    auto lead = leader.get();
    REQUIRE_MESSAGE(lead.ok(), lead.error().message);
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    auto other = std::async(std::launch::async, [&] { return (*follower)->gather("one", "test", deadline); });
    const auto all = (*lead)->gather("zero", "test", deadline);
    REQUIRE(all.ok());
    CHECK(*all == std::vector<std::string>{"zero", "one"});
    CHECK(*other.get() == *all);
  }
};

int call(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  return fd;
}

// Whether the other end hangs up within the time.
bool is_cut_off(int fd, std::chrono::milliseconds within) {
  const auto until = Clock::now() + within;
  while (Clock::now() < until) {
    pollfd waits{fd, POLLIN, 0};
    if (poll(&waits, 1, 20) <= 0) continue;
    char byte = 0;
    if (recv(fd, &byte, 1, MSG_DONTWAIT) <= 0) return true;
  }
  return false;
}

// The local addresses, as /proc writes them, at which something listens on the port.
std::vector<std::string> listening_at(uint16_t port) {
  std::ifstream table("/proc/net/tcp");
  std::vector<std::string> found;
  std::string line;
  std::ostringstream wanted;
  wanted << ":" << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << port;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    words >> number >> local >> remote >> state;
    if (state == "0A" && local.size() == 13 && local.substr(8) == wanted.str()) found.push_back(local.substr(0, 8));
  }
  return found;
}

}  // namespace

TEST_CASE("process 0 listens where it is called, and nowhere else") {
  Run run(std::chrono::seconds(10));
  CHECK(listening_at(run.port()) == std::vector<std::string>{"0100007F"});
  run.finish();
}

TEST_CASE("a caller that does not know the word is cut off before it fills the memory") {
  Run run(std::chrono::seconds(10));
  const std::string chunk(1 << 16, 's');
  constexpr size_t enough = size_t{1} << 28;
  // Anything at all; a message of 2^63 bytes; a hello with another word.
  std::string endless = "s";
  endless += std::string(7, '\0') + '\x7f';
  std::string wrong = "s\x10" + std::string(7, '\0') + "\x01" + std::string(7, '\0') + "notright";
  for (const std::string& start : {std::string("x"), endless, wrong}) {
    CAPTURE(start);
    const int fd = call(run.port());
    size_t sent = 0;
    REQUIRE(send(fd, start.data(), start.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(start.size()));
    while (sent < enough) {
      const ssize_t n = send(fd, chunk.data(), chunk.size(), MSG_NOSIGNAL);
      if (n < 0) break;
      sent += static_cast<size_t>(n);
    }
    CHECK(sent < enough);
    CHECK(is_cut_off(fd, std::chrono::seconds(5)));
    close(fd);
  }
  run.finish();
}

TEST_CASE("a caller that says nothing, or half of what it should, is cut off after a while") {
  Run run(std::chrono::milliseconds(200));
  const int silent = call(run.port());
  const int slow = call(run.port());
  REQUIRE(send(slow, "s\x10", 2, MSG_NOSIGNAL) == 2);
  CHECK(is_cut_off(silent, std::chrono::seconds(5)));
  CHECK(is_cut_off(slow, std::chrono::seconds(5)));
  close(silent);
  close(slow);
  run.finish();
}

TEST_CASE("many silent callers do not keep a process of the run out") {
  Run run(std::chrono::seconds(15));
  std::vector<int> calls;
  for (int i = 0; i < 200; ++i) calls.push_back(call(run.port()));
  CHECK(is_cut_off(calls.front(), std::chrono::seconds(5)));
  run.finish();
  for (const int fd : calls) close(fd);
}

// The others' calls fail where one of them ends, and process 0 may hear of both at once.
TEST_CASE("a process that has ended is named before an error that another one met") {
  for (const bool needed : {false, true}) {
    CAPTURE(needed);
    Run run(std::chrono::seconds(10), 3);
    auto first = std::async(std::launch::async, [&] { return Control::open(run.question(1, std::chrono::seconds(10))); });
    auto second = Control::open(run.question(2, std::chrono::seconds(10)));
    auto ends = first.get();
    auto lead = run.leader.get();
    REQUIRE(second.ok());
    REQUIRE(ends.ok());
    REQUIRE_MESSAGE(lead.ok(), lead.error().message);
    ends->reset();
    (*second)->report(environment("test: a call failed"));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::optional<Error> wrong;
    if (needed) {
      const auto all = (*lead)->gather("zero", "test", Clock::now() + std::chrono::seconds(20));
      if (!all) wrong = all.error();
    } else {
      wrong = (*lead)->trouble("test");
    }
    REQUIRE(wrong);
    CHECK(wrong->message == "test: rank 1 has ended");
  }
}
