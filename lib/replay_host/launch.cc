#include "replay_host/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>
#include <thread>

namespace meshplan {
namespace {

// A free port.
std::optional<int> free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const bool known = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(fd);
  if (!known) return std::nullopt;
  return ntohs(address.sin_port);
}

struct Child {
  pid_t pid = -1;
  bool running = false;
};

// Comes back only where it fails; errno says why.
void exec(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
}

// Runs in the child; never returns.
[[noreturn]] void become(const std::vector<std::string>& command, int64_t rank, int64_t ranks,
                         int port, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(5);  // the parent has exited
  const std::string number = std::to_string(rank);
  const std::string all = std::to_string(ranks);
  const std::string address = "127.0.0.1:" + std::to_string(port);
  setenv("MESHPLAN_RANK", number.c_str(), 1);        // NOLINT(concurrency-mt-unsafe)
  setenv("MESHPLAN_LOCAL_RANK", number.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  setenv("MESHPLAN_RANKS", all.c_str(), 1);          // NOLINT(concurrency-mt-unsafe)
  setenv("MESHPLAN_LOCAL_RANKS", all.c_str(), 1);    // NOLINT(concurrency-mt-unsafe)
  if (std::getenv("NCCL_COMM_ID") == nullptr)
    setenv("NCCL_COMM_ID", address.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  exec(command);
  _exit(5);
}

void stop_running(const std::vector<Child>& children, int signal, std::ostream& messages) {
  for (size_t r = 0; r < children.size(); ++r) {
    if (!children[r].running) continue;
    messages << "rank number " << r << " did not exit: killed\n";
    kill(children[r].pid, signal);
  }
}

bool is_ours(int code) { return code == 0 || (code >= 1 && code <= 5) || code == 70; }

}  // namespace

Status may_launch(int64_t ranks) {
  constexpr int64_t most = 4096;
  if (ranks >= 1 && ranks <= most) return Done{};
  return bad_input("--launch " + std::to_string(ranks) + ": expected 1 to " + std::to_string(most) +
                   " ranks; start more with a launcher, without --launch");
}

Result<int> launch_ranks(const std::vector<std::string>& command, int64_t ranks,
                         std::ostream& messages, std::chrono::milliseconds grace) {
  if (auto allowed = may_launch(ranks); !allowed) return allowed.error();
  const auto port = free_port();
  if (!port)
    return environment("--launch: no free port on 127.0.0.1 for the rendezvous of the ranks");
  std::vector<Child> children(static_cast<size_t>(ranks));
  const pid_t self = getpid();
  int64_t running = 0;
  int result = 0;
  for (int64_t r = 0; r < ranks; ++r) {
    Child& child = children[r];
    child.pid = fork();
    if (child.pid == 0) become(command, r, ranks, *port, self);
    if (child.pid < 0) {
      messages << "rank number " << r << " cannot be started: " << std::strerror(errno)
               << "\n";  // NOLINT(concurrency-mt-unsafe)
      result = 5;
      break;
    }
    child.running = true;
    ++running;
  }
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> failed_at;
  if (result != 0) failed_at = Clock::now();
  bool asked = false;
  bool killed = false;
  while (running > 0) {
    for (size_t r = 0; r < children.size(); ++r) {
      Child& child = children[r];
      int status = 0;
      if (!child.running || waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
      child.running = false;
      --running;
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (code == 0 || asked) continue;
      messages << "rank number " << r
               << (WIFEXITED(status) ? " ended with exit code " : " was ended by signal ")
               << (WIFEXITED(status) ? code : WTERMSIG(status)) << "\n";
      if (result == 0) result = is_ours(code) ? code : 5;
      if (!failed_at) failed_at = Clock::now();
    }
    if (failed_at && !asked && running > 0 && Clock::now() - *failed_at > grace) {
      stop_running(children, SIGTERM, messages);
      asked = true;
    }
    if (asked && !killed && Clock::now() - *failed_at > grace + std::chrono::seconds(2)) {
      std::ostream silent(nullptr);
      stop_running(children, SIGKILL, silent);
      killed = true;
    }
    if (running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return result;
}

Result<int> run_attached(const std::vector<std::string>& command,
                         const std::vector<std::pair<std::string, std::string>>& defaults) {
  // The child writes why it cannot become the program; a program that starts closes it.
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0)
    return environment(std::string("cannot make a pipe: ") + std::strerror(errno));
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self) _exit(5);  // the parent has exited
    for (const auto& [name, value] : defaults)
      setenv(name.c_str(), value.c_str(), 0);  // NOLINT(concurrency-mt-unsafe)
    exec(command);
    const int reason = errno;
    if (write(report[1], &reason, sizeof(reason)) != sizeof(reason)) _exit(6);
    _exit(5);
  }
  const int failed_fork = errno;
  close(report[1]);
  int reason = child < 0 ? failed_fork : 0;
  if (child >= 0) {
    while (read(report[0], &reason, sizeof(reason)) < 0 && errno == EINTR) {
    }
  }
  close(report[0]);
  int status = 0;
  while (child >= 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (reason != 0) return environment("cannot run " + command[0] + ": " + std::strerror(reason));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace meshplan
