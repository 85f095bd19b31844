#include "cli/run_writer.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace meshplan {
namespace {

namespace fs = std::filesystem;

constexpr std::streamoff most_said = 1 << 16;  // bytes of the end of what a program prints

// A folder that goes with its scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    path_ = ((error ? fs::path("/tmp") : parent) / "meshplan-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }  // empty: errno says why

 private:
  std::string path_;
};

volatile std::sig_atomic_t running = 0;  // the program's process group; 0: none

void pass_on(int signal) {
  if (running > 0) ::kill(-running, signal);
}

// Signals that end a process go to the program while this lives; those that are ignored stay so.
class Forwarding {
 public:
  Forwarding() {
    struct sigaction forward {};
    forward.sa_handler = pass_on;
    sigemptyset(&forward.sa_mask);
    for (size_t i = 0; i < signals.size(); ++i) {
      ::sigaction(signals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &forward, nullptr);
    }
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding() {
    running = 0;
    for (size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
  }
  static sigset_t set() {
    sigset_t all;
    sigemptyset(&all);
    for (const int signal : signals) sigaddset(&all, signal);
    return all;
  }

 private:
  static constexpr std::array<int, 4> signals{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  std::array<struct sigaction, signals.size()> before_{};
};

struct Program {
  std::vector<std::string> words;
  std::string variable;
  std::string value;
  std::string log;
};

// In the child: becomes the program. Comes back only where that fails; errno says why.
void become(const Program& program) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log = ::open(program.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (nothing < 0 || log < 0 || ::dup2(nothing, 0) < 0 || ::dup2(log, 1) < 0 || ::dup2(log, 2) < 0)
    return;
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  ::setenv(program.variable.c_str(), program.value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : program.words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
}

// The wait status of the program, once it has ended.
Result<int> wait_status(const Program& program) {
  // The child writes why it cannot become the program; a program that starts closes it.
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0)
    return environment(std::string("cannot make a pipe: ") + std::strerror(errno));
  const Forwarding forwarding;
  const sigset_t signals = Forwarding::set();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);  // none comes before it is known whom it goes to
  const pid_t child = ::fork();
  if (child == 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    become(program);
    const int reason = errno;
    if (::write(report[1], &reason, sizeof(reason)) != sizeof(reason)) ::_exit(6);
    ::_exit(5);
  }
  int reason = child < 0 ? errno : 0;
  if (child > 0) {
    ::setpgid(child, child);  // the child does so too: whichever is first
    running = child;
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(report[1]);
  if (child > 0) {
    while (::read(report[0], &reason, sizeof(reason)) < 0 && errno == EINTR) {
    }
  }
  ::close(report[0]);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (reason != 0)
    return environment("cannot run " + program.words[0] + ": " + std::strerror(reason));
  return status;
}

std::string end_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const std::streamoff size = in.tellg();
  const std::streamoff kept = size < most_said ? size : most_said;
  std::string text(static_cast<size_t>(kept), '\0');
  in.seekg(size - kept);
  in.read(text.data(), kept);
  return text;
}

}  // namespace

Result<FileWriting> run_writer(const std::string& name, const std::string& variable,
                               const WriterCommand& command) {
  const TemporaryFolder folder;
  if (folder.path().empty())
    return environment(std::string("cannot make a temporary folder: ") + std::strerror(errno));
  const std::string path = folder.path() + "/" + name;
  const std::string log = folder.path() + "/.printed";
  const auto status = wait_status({command(path), variable, path, log});
  if (!status) return status.error();
  FileWriting done;
  done.exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 0;
  done.signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
  done.said = end_of(log);
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() > static_cast<std::streamoff>(max_input_bytes)) return done;
  std::string text(static_cast<size_t>(in.tellg()), '\0');
  in.seekg(0);
  if (in.read(text.data(), static_cast<std::streamsize>(text.size()))) done.file = std::move(text);
  return done;
}

}  // namespace meshplan
