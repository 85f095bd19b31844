#include "cli/real_system.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <sstream>

#include "base/text.h"
#include "cli/cannot_write.h"
#include "cli/run_writer.h"
#include "cli/temporary_file.h"
#include "replay_host/launch.h"

namespace meshplan {
namespace {

std::string reason(int error) { return std::strerror(error); }

// A file descriptor that is closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// Appends what is there; false at the end of the file or on an error.
bool read_some(int fd, std::string& to) {
  std::array<char, 65536> buffer;
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR;
  to.append(buffer.data(), static_cast<size_t>(n));
  return n > 0;
}

// Writes every part to the descriptor, which outlives it.
TextSink sink_to(int fd, const std::string& path) {
  return [fd, path](std::string_view text) -> Status {
    if (!write_all(fd, text)) return cannot_write(path, errno);
    return Done{};
  };
}

Error too_large(const std::string& path) {
  return bad_input("cannot read " + path + ": larger than the limit of " +
                   human_bytes(max_input_bytes));
}

// The own descriptor that a path such as /proc/self/fd/1 names.
std::optional<int> named_descriptor(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::canonical(path.parent_path(), error);
  if (error || folder != fs::canonical("/proc/self/fd", error) || error) return std::nullopt;
  const auto number = parse_int(path.filename().string());
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

// Where a path leads that may be a link, or a link to a link, to something that need not be there;
// to a descriptor, not to what is open there; nullopt where links go round.
std::optional<std::string> follow_links(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path at = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(at, error)) || named_descriptor(at)) return at.string();
    const fs::path next = fs::read_symlink(at, error);
    if (error) return at.string();
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return std::nullopt;
}

std::string shown_link(const std::string& path, const std::string& target) {
  return target == path ? path : path + " (a link to " + target + ")";
}

}  // namespace

Result<std::string> RealSystem::read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0)
    return bad_input("cannot read " + path + ": " + reason(errno));
  if (S_ISDIR(facts.st_mode)) return bad_input("cannot read " + path + ": is a folder");
  const auto size = static_cast<size_t>(std::max<off_t>(facts.st_size, 0));
  if (size > max_input_bytes) return too_large(path);
  std::string text;
  text.reserve(size + 1);
  errno = 0;
  // A device, a pipe or a file that grows says no size before: it is read up to the limit.
  while (text.size() <= max_input_bytes && read_some(file.get(), text)) {
  }
  if (errno != 0) return bad_input("cannot read " + path + ": " + reason(errno));
  if (text.size() > max_input_bytes) return too_large(path);
  return text;
}

Status RealSystem::write_file(const std::string& path, const std::string& text) {
  return write_parts(path, [&](const TextSink& sink) { return sink(text); });
}

Status RealSystem::write_parts(const std::string& path, const TextWriter& write) {
  struct stat facts {};
  const bool exists = ::stat(path.c_str(), &facts) == 0;
  if (exists && S_ISDIR(facts.st_mode)) return bad_input("cannot write " + path + ": is a folder");
  // A link is followed: what it points to is replaced, or made where it is not there yet.
  const auto target = follow_links(path);
  if (!target) return cannot_write(path, ELOOP);
  // A device, a pipe and what is open (/dev/stdout, also where that is a file) is written to, not
  // replaced: what others wrote there stays, and what they will write comes behind.
  const auto open = named_descriptor(*target);
  if (open || (exists && !S_ISREG(facts.st_mode))) {
    const Descriptor file(open ? ::fcntl(*open, F_DUPFD_CLOEXEC, 0)
                               : ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) return cannot_write(path, errno);
    return write(sink_to(file.get(), path));
  }
  const std::string shown = shown_link(path, *target);
  TemporaryFile file(*target);
  if (file.fd() < 0) return cannot_make(shown, *target, errno);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = exists ? facts.st_mode & 07777 : 0666 & ~mask;
  if (::fchmod(file.fd(), mode) != 0) return cannot_write(shown, errno);
  if (auto written = write(sink_to(file.fd(), shown)); !written) return written;
  if (::fsync(file.fd()) != 0 || !file.rename_to_target()) return cannot_write(shown, errno);
  return Done{};
}

Status RealSystem::may_write(const std::string& path) {
  struct stat facts {};
  const bool exists = ::stat(path.c_str(), &facts) == 0;
  if (exists && S_ISDIR(facts.st_mode)) return bad_input("cannot write " + path + ": is a folder");
  const auto target = follow_links(path);
  if (!target) return cannot_write(path, ELOOP);
  if (named_descriptor(*target)) return Done{};
  if (exists && !S_ISREG(facts.st_mode)) {
    return ::access(path.c_str(), W_OK) == 0 ? Status(Done{}) : cannot_write(path, errno);
  }
  const std::string folder = std::filesystem::path(*target).parent_path().string();
  if (::access(folder.empty() ? "." : (folder + "/").c_str(), W_OK | X_OK) == 0) return Done{};
  return cannot_make(shown_link(path, *target), *target, errno);
}

bool RealSystem::same_file(const std::string& a, const std::string& b) {
  struct stat one {};
  struct stat other {};
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && S_ISREG(one.st_mode) &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool RealSystem::is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool RealSystem::may_wait(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

Result<std::vector<std::string>> RealSystem::list_json(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.front() == '.') {
      if (entry->is_directory(ignored)) entry.disable_recursion_pending();
    } else if (entry->path().extension() == ".json" && entry->is_regular_file(ignored)) {
      files.push_back(entry->path().string());
    }
    entry.increment(error);
  }
  if (error) return bad_input("cannot list " + folder + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> RealSystem::run_program(const std::vector<std::string>& command) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0)
    return environment("cannot make a pipe: " + reason(errno));
  Descriptor out_read(out[0]);
  Descriptor out_write(out[1]);
  if (::pipe2(err.data(), O_CLOEXEC) != 0)
    return environment("cannot make a pipe: " + reason(errno));
  Descriptor err_read(err[0]);
  Descriptor err_write(err[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err_write.get(), 2);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return environment("cannot run " + command[0] + ": " + reason(failed));
  out_write.close();
  err_write.close();
  // Both streams are read as they come, so that neither fills up while the other is waited for.
  std::string text;
  std::string complaint;
  std::array<pollfd, 2> waiting = {pollfd{out_read.get(), POLLIN, 0},
                                   pollfd{err_read.get(), POLLIN, 0}};
  while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      std::string& heard = i == 0 ? text : complaint;
      if (!read_some(waiting[i].fd, heard)) waiting[i].fd = -1;
      // What is beyond the limit is not read; the program that goes on writing it gets SIGPIPE.
      if (heard.size() > max_input_bytes) waiting[0].fd = waiting[1].fd = -1;
      waiting[i].revents = 0;
    }
  }
  out_read.close();
  err_read.close();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (text.size() > max_input_bytes) return too_large(join(command, " "));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  while (!complaint.empty() && complaint.back() == '\n') complaint.pop_back();
  std::replace(complaint.begin(), complaint.end(), '\n', ' ');
  return bad_input(command[0] + " failed: " + (complaint.empty() ? "no error message" : complaint));
}

Result<int> RealSystem::run_attached(const std::vector<std::string>& command,
                                     const Variables& defaults) {
  return meshplan::run_attached(command, defaults);
}

Result<FileWriting> RealSystem::run_writer(const std::string& name, const std::string& variable,
                                           const WriterCommand& command) {
  return meshplan::run_writer(name, variable, command);
}

Result<int> RealSystem::launch(const std::vector<std::string>& command, int64_t ranks,
                               std::string& messages) {
  std::ostringstream lines;
  auto code = launch_ranks(command, ranks, lines, std::chrono::seconds(5));
  messages += lines.str();
  return code;
}

std::string RealSystem::own_path() {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return path.empty() ? "meshplan" : path.string();
}

std::optional<std::string> RealSystem::variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

bool RealSystem::is_terminal(Stream stream) { return ::isatty(static_cast<int>(stream)) == 1; }

int64_t RealSystem::terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 0;
}

int64_t RealSystem::now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace meshplan
