// What a command costs as a whole process: time from start to end and the most memory it held.
//
// usage: process_cost [--repeat N] [--max-ms M] [--max-mb M] [--each FILE...] -- COMMAND ARGUMENT...
// Runs the command N times (default 20), once per FILE with "{}" replaced by it, without its output, and prints one line each. With a
// limit, exits 1 where the processor time of the fastest run or the memory of any run is above it: on an idle machine processor time is
// the time from start to end for a program of one thread, and a busy machine does not stretch it.
// Memory is the resident maximum; this program is small, so that what a fork shares with it does not count.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Sample {
  double ms = 0;
  double cpu_ms = 0;
  double mb = 0;
};

Sample run_once(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "process_cost: %s ended with status %d\n", command[0].c_str(), WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    std::exit(1);
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  auto in_ms = [](const timeval& t) { return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3; };
  return {spent.count(), in_ms(usage.ru_utime) + in_ms(usage.ru_stime), static_cast<double>(usage.ru_maxrss) / 1024.0};
}

int usage() {
  std::fputs("usage: process_cost [--repeat N] [--max-ms M] [--max-mb M] [--each FILE...] -- COMMAND ARGUMENT...\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end() || dashes + 1 == arguments.end()) return usage();
  int repeat = 20;
  double max_ms = 0;
  double max_mb = 0;
  std::vector<std::string> files;
  for (auto word = arguments.begin(); word != dashes; ++word) {
    const bool last = word + 1 == dashes;
    if (*word == "--each") {
      files.assign(word + 1, dashes);
      break;
    }
    if (last) return usage();
    if (*word == "--repeat") {
      repeat = std::max(1, std::atoi((++word)->c_str()));
    } else if (*word == "--max-ms") {
      max_ms = std::atof((++word)->c_str());
    } else if (*word == "--max-mb") {
      max_mb = std::atof((++word)->c_str());
    } else {
      return usage();
    }
  }
  if (files.empty()) files.emplace_back();

  bool within = true;
  std::printf("%9s %9s %9s %9s  %s\n", "min ms", "median ms", "CPU ms", "max MB", "of");
  for (const std::string& file : files) {
    std::vector<std::string> command(dashes + 1, arguments.end());
    std::replace(command.begin(), command.end(), std::string("{}"), file);
    std::vector<double> times;
    double memory = 0;
    double cpu = 0;
    for (int i = 0; i < repeat; ++i) {
      const Sample sample = run_once(command);
      times.push_back(sample.ms);
      memory = std::max(memory, sample.mb);
      cpu = i == 0 ? sample.cpu_ms : std::min(cpu, sample.cpu_ms);
    }
    std::sort(times.begin(), times.end());
    std::printf("%9.2f %9.2f %9.2f %9.1f  %s\n", times.front(), times[times.size() / 2], cpu, memory,
                file.empty() ? command[0].c_str() : file.c_str());
    within = within && (max_ms <= 0 || cpu < max_ms) && (max_mb <= 0 || memory < max_mb);
  }
  if (!within) std::fprintf(stderr, "process_cost: above the limit of %g ms and %g MB\n", max_ms, max_mb);
  return within ? 0 : 1;
}
