// The operating system itself: what becomes of files, links and devices, and of what was begun when a signal comes.
#include "cli/real_system.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "cli/cannot_write.h"

namespace meshplan {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the test.
struct Folder {
  std::string path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "meshplan_test.XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path); }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path + "/" + name; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(path)) all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }
};

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST_CASE("a file is replaced whole, with its permissions, and nothing stays beside it") {
  const Folder folder;
  RealSystem system;
  REQUIRE(system.write_file(folder / "a", "one").ok());
  fs::permissions(folder / "a", fs::perms::owner_read | fs::perms::owner_write);
  REQUIRE(system.write_file(folder / "a", "two").ok());
  CHECK(text_of(folder / "a") == "two");
  CHECK(fs::status(folder / "a").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.names() == std::vector<std::string>{"a"});
  CHECK(!system.write_file(folder.path, "x").ok());
  CHECK(!system.write_file(folder / "none/x", "x").ok());
  CHECK(system.write_file("/dev/null", "x").ok());
}

TEST_CASE("a text in parts replaces the file whole, or not at all where its writer fails") {
  const Folder folder;
  RealSystem system;
  REQUIRE(system.write_file(folder / "a", "old").ok());
  const auto failed = system.write_parts(folder / "a", [](const TextSink& sink) -> Status {
    if (auto written = sink("new"); !written) return written;
    return bad_input("nothing more");
  });
  REQUIRE(!failed.ok());
  CHECK(failed.error().message == "nothing more");
  CHECK(text_of(folder / "a") == "old");
  const auto done = system.write_parts(folder / "a", [](const TextSink& sink) -> Status {
    if (auto written = sink("one "); !written) return written;
    return sink("two");
  });
  CHECK(done.ok());
  CHECK(text_of(folder / "a") == "one two");
  CHECK(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("a full disk is the environment's fault, a path that is none to write to the user's") {
  const Folder folder;
  RealSystem system;
  const auto full = system.write_file("/dev/full", "x");
  REQUIRE(!full.ok());
  CHECK(full.error() == environment("cannot write /dev/full: No space left on device"));
  const auto astray = system.write_file(folder / "none/x", "x");
  REQUIRE(!astray.ok());
  CHECK(astray.error() == bad_input("cannot write " + (folder / "none/x") + ": there is no folder " + (folder / "none") +
                                    "; make it (mkdir -p '" + (folder / "none") + "') or write to another one"));
}

TEST_CASE("of a folder in which no file can be made it is told what it lacks, before anything is computed as well") {
  const Folder folder;
  RealSystem system;
  REQUIRE(system.write_file(folder / "file", "old").ok());
  fs::create_symlink(folder / "none/x", folder / "link");
  const auto says = [&](const std::string& path, const std::string& message) {
    CAPTURE(path);
    const auto before = system.may_write(path);
    REQUIRE(!before.ok());
    CHECK(before.error().fault == Fault::bad_input);
    CHECK(before.error().message == "cannot write " + message);
    const auto written = system.write_file(path, "x");
    REQUIRE(!written.ok());
    CHECK(written.error() == before.error());
  };
  const std::string none =
      "there is no folder " + (folder / "none") + "; make it (mkdir -p '" + (folder / "none") + "') or write to another one";
  says(folder / "none/x", (folder / "none/x") + ": " + none);
  says(folder / "link", (folder / "link") + " (a link to " + (folder / "none/x") + "): " + none);
  says(folder / "file/x", (folder / "file/x") + ": " + (folder / "file") + " is no folder; write to another path");
  says(folder / ".", (folder / ".") + ": is a folder");
  for (const std::string& right :
       {folder / "file", folder / "new", std::string("/dev/null"), std::string("/dev/stdout"), std::string("new")})
    CHECK_MESSAGE(system.may_write(right).ok(), right);
  CHECK(text_of(folder / "file") == "old");
  for (const int error : {EACCES, EROFS}) {
    CHECK(cannot_make("a/x", "a/x", error) ==
          bad_input("cannot write a/x: no file can be made in the folder a (" + std::generic_category().message(error) +
                    "); write to another one, or allow it there"));
  }
  CHECK(cannot_make("x", "x", EACCES).message.find("in the folder . (") != std::string::npos);
  CHECK(cannot_make("x", "x", ENOSPC) == environment("cannot write x: No space left on device"));
}

TEST_CASE("an open descriptor is written to where it stands, also one of a file, which is not replaced") {
  const Folder folder;
  RealSystem system;
  const int fd = ::open((folder / "log").c_str(), O_CREAT | O_WRONLY, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(::write(fd, "before ", 7) == 7);
  fs::create_symlink("/dev/fd/" + std::to_string(fd), folder / "link");
  CHECK(system.write_file("/dev/fd/" + std::to_string(fd), "one ").ok());
  // Not the descriptor that so large a number is cut to.
  CHECK(!system.write_file("/proc/self/fd/" + std::to_string((int64_t{1} << 32) + fd), "lost").ok());
  CHECK(system.write_file("/proc/self/fd/" + std::to_string(fd), "two ").ok());
  CHECK(system.write_file(folder / "link", "three ").ok());
  REQUIRE(::write(fd, "after", 5) == 5);
  ::close(fd);
  CHECK(text_of(folder / "log") == "before one two three after");
  CHECK(folder.names() == std::vector<std::string>{"link", "log"});
  const auto closed = system.write_file("/dev/fd/" + std::to_string(fd), "x");
  REQUIRE(!closed.ok());
  CHECK(closed.error().message == "cannot write /dev/fd/" + std::to_string(fd) + ": Bad file descriptor");
}

TEST_CASE("links are written through, those to nothing too, and those that go round are refused") {
  const Folder folder;
  RealSystem system;
  fs::create_directory(folder / "d");
  fs::create_symlink("d/target", folder / "link");
  fs::create_symlink("link", folder / "second");
  REQUIRE(system.write_file(folder / "second", "one").ok());
  CHECK(fs::is_symlink(folder / "second"));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(text_of(folder / "d/target") == "one");
  REQUIRE(system.write_file(folder / "link", "two").ok());
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(text_of(folder / "d/target") == "two");
  CHECK(folder.names() == std::vector<std::string>{"d", "link", "second"});

  fs::create_symlink("none/target", folder / "astray");
  const auto astray = system.write_file(folder / "astray", "x");
  REQUIRE(!astray.ok());
  CHECK(astray.error().message.find("(a link to ") != std::string::npos);
  CHECK(fs::is_symlink(folder / "astray"));
  fs::create_symlink("round", folder / "round");
  CHECK(!system.write_file(folder / "round", "x").ok());
  CHECK(fs::is_symlink(folder / "round"));
}

TEST_CASE("the same file is known by any of its names") {
  const Folder folder;
  RealSystem system;
  REQUIRE(system.write_file(folder / "a", "x").ok());
  REQUIRE(system.write_file(folder / "b", "x").ok());
  fs::create_symlink("a", folder / "link");
  fs::create_hard_link(folder / "a", folder / "hard");
  CHECK(system.same_file(folder / "a", folder.path + "/./a"));
  CHECK(system.same_file(folder / "link", folder / "a"));
  CHECK(system.same_file(folder / "hard", folder / "link"));
  CHECK(!system.same_file(folder / "a", folder / "b"));
  CHECK(!system.same_file(folder / "none", folder / "none"));
  CHECK(!system.same_file("/dev/null", "/dev/null"));  // loses nothing
}

TEST_CASE("a pipe or a device may be waited for, a file, a folder and what is not there never") {
  const Folder folder;
  RealSystem system;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("pipe", folder / "link");
  REQUIRE(system.write_file(folder / "a", "x").ok());
  CHECK(system.may_wait(folder / "pipe"));
  CHECK(system.may_wait(folder / "link"));
  CHECK(system.may_wait("/dev/zero"));
  CHECK(!system.may_wait(folder / "a"));
  CHECK(!system.may_wait(folder.path));
  CHECK(!system.may_wait(folder / "none"));
}

TEST_CASE("what has no end is read up to a limit, what is too large not at all") {
  const Folder folder;
  RealSystem system;
  const auto zeros = system.read_file("/dev/zero");
  REQUIRE(!zeros.ok());
  CHECK(zeros.error().message == "cannot read /dev/zero: larger than the limit of 512 MiB");
  std::ofstream(folder / "sparse").put(' ');
  fs::resize_file(folder / "sparse", uintmax_t{1} << 40);
  const auto sparse = system.read_file(folder / "sparse");
  REQUIRE(!sparse.ok());
  CHECK(sparse.error().message.find("larger than the limit of 512 MiB") != std::string::npos);
}

// A child that writes `text` over "out" in the folder while no file may be larger than `limit`; how it ended.
int write_in_child(const Folder& folder, const std::string& text, rlim_t limit, int kill_by) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGXFSZ}) ::signal(signal, SIG_DFL);  // those of the test runner
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    const rlimit size{limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &size);
    RealSystem system;
    ::_exit(system.write_file(folder / "out", text).ok() ? 0 : 1);
  }
  // The file beside it is what the signal has to find.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (kill_by != 0 && folder.names().size() < 2 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (kill_by != 0) ::kill(child, kill_by);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE("a signal that ends the process while it writes leaves the old file and nothing else") {
  const Folder folder;
  RealSystem system;
  REQUIRE(system.write_file(folder / "out", "old").ok());
  const std::string large(size_t{1} << 28, 'x');
  // Above the limit the system sends SIGXFSZ: always in the middle of the file.
  const int full = write_in_child(folder, large, 1 << 20, 0);
  CHECK(WIFSIGNALED(full));
  CHECK(WTERMSIG(full) == SIGXFSZ);
  CHECK(folder.names() == std::vector<std::string>{"out"});
  CHECK(text_of(folder / "out") == "old");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(signal);
    const int ended = write_in_child(folder, large, RLIM_INFINITY, signal);
    CHECK(WIFSIGNALED(ended));
    CHECK(WTERMSIG(ended) == signal);
    CHECK(folder.names() == std::vector<std::string>{"out"});
    CHECK(text_of(folder / "out") == "old");
  }
}

TEST_CASE("a signal that was ignored stays ignored while a file is written") {
  const Folder folder;
  ::signal(SIGHUP, SIG_IGN);
  RealSystem system;
  CHECK(system.write_file(folder / "out", "x").ok());
  struct sigaction now {};
  ::sigaction(SIGHUP, nullptr, &now);
  CHECK((now.sa_handler == SIG_IGN));
  ::signal(SIGHUP, SIG_DFL);
  CHECK(system.write_file(folder / "out", "x").ok());
  ::sigaction(SIGHUP, nullptr, &now);
  CHECK((now.sa_handler == SIG_DFL));
}

TEST_CASE("of a program's output no more is read than of a file") {
  RealSystem system;
  const auto endless = system.run_program({"cat", "/dev/zero"});
  REQUIRE(!endless.ok());
  CHECK(endless.error().message.find("cat /dev/zero: larger than the limit of 512 MiB") != std::string::npos);
  CHECK(*system.run_program({"echo", "a b"}) == "a b\n");
}

WriterCommand shell(const std::string& script) {
  return [script](const std::string&) { return std::vector<std::string>{"/bin/sh", "-c", script}; };
}

// What run_writer gives where temporary folders are made in `folder`.
Result<FileWriting> written(const Folder& folder, const WriterCommand& command) {
  ::setenv("TMPDIR", folder.path.c_str(), 1);
  auto done = RealSystem().run_writer("r.json", "WHERE", command);
  ::unsetenv("TMPDIR");
  CHECK(folder.names().empty());
  return done;
}

TEST_CASE("a program writes its file into a folder that is gone afterwards") {
  const Folder folder;
  const auto done =
      written(folder, shell("cat; echo out; echo err >&2; echo text > \"$WHERE\"; basename \"$WHERE\"; (sleep 30 &) ; exit 7"));
  REQUIRE(done.ok());
  CHECK(done->exit_code == 7);
  CHECK(done->signal == 0);
  CHECK(done->said == "out\nerr\nr.json\n");
  CHECK(done->file == "text\n");
  const auto of_path = written(folder, [](const std::string& path) { return std::vector<std::string>{"touch", path}; });
  CHECK(of_path->file == "");
  CHECK(!written(folder, shell("true"))->file);
  CHECK(written(folder, shell("seq 100000"))->said.size() == 65536);
  const auto killed = written(folder, shell("kill -9 $$"));
  CHECK(killed->signal == SIGKILL);
  CHECK(killed->exit_code == 0);
  const auto missing = written(folder, [](const std::string&) { return std::vector<std::string>{"/no/such/program"}; });
  REQUIRE(!missing.ok());
  CHECK(missing.error() == environment("cannot run /no/such/program: No such file or directory"));
}

TEST_CASE("a signal ends the program and what it started, and this process goes on") {
  const Folder folder;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t self = ::getpid();
    std::thread sender([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(self, signal);
    });
    const auto done = written(folder, shell("sleep 60 & sleep 60"));
    sender.join();
    REQUIRE(done.ok());
    CHECK(done->signal == signal);
  }
}

}  // namespace
}  // namespace meshplan
