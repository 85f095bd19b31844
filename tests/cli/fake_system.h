// An outside world in memory for tests of the command line, and a spec.
#pragma once

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>

#include "cli/cli.h"

namespace meshplan::test {

// Files in memory; records what was asked of it.
class FakeSystem : public System {
 public:
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> variables;
  std::set<Stream> terminals;
  std::set<std::string> pipes;
  std::vector<std::string> writes;
  std::vector<std::vector<std::string>> programs;
  std::string program_output;
  int attached_code = 0;  // of run_attached; -1: the program cannot be started
  Variables given;        // to run_attached
  bool broken = false;    // every read throws
  bool full = false;      // no read finds memory
  int64_t clock = 0;

  Result<std::string> read_file(const std::string& path) override {
    if (broken) throw std::logic_error("the fake is broken");
    if (full) throw std::bad_alloc();
    const auto file = files.find(path);
    if (file == files.end()) return bad_input("cannot read " + path + ": No such file or directory");
    return file->second;
  }
  std::string no_folder;  // a path that cannot be written
  Status may_write(const std::string& path) override {
    return path == no_folder ? Status(bad_input("cannot write " + path)) : Status(Done{});
  }
  Status write_file(const std::string& path, const std::string& text) override {
    writes.push_back(path);
    files[path] = text;
    return Done{};
  }
  Status write_parts(const std::string& path, const TextWriter& write) override {
    std::string text;
    const auto written = write([&](std::string_view part) -> Status {
      text += part;
      return Done{};
    });
    return written ? write_file(path, text) : written;
  }
  bool same_file(const std::string& a, const std::string& b) override { return a == b && files.count(a) > 0; }
  bool is_folder(const std::string& path) override {
    return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.first.rfind(path + "/", 0) == 0; });
  }
  bool may_wait(const std::string& path) override { return pipes.count(path) > 0; }
  Result<std::vector<std::string>> list_json(const std::string& folder) override {
    std::vector<std::string> names;
    for (const auto& [name, text] : files) {
      if (name.rfind(folder + "/", 0) == 0) names.push_back(name);
    }
    return names;
  }
  Result<std::string> run_program(const std::vector<std::string>& command) override {
    programs.push_back(command);
    return program_output;
  }
  Result<int> run_attached(const std::vector<std::string>& command, const Variables& defaults) override {
    programs.push_back(command);
    given = defaults;
    if (attached_code < 0) return environment("cannot run " + command[0]);
    return attached_code;
  }
  FileWriting writing;  // what run_writer gives; exit_code -1: the program cannot be started
  Result<FileWriting> run_writer(const std::string& name, const std::string& variable, const WriterCommand& command) override {
    programs.push_back(command("/tmp/m/" + name));
    given = {{variable, "/tmp/m/" + name}};
    if (writing.exit_code < 0) return environment("cannot run " + programs.back()[0]);
    return writing;
  }
  Result<int> launch(const std::vector<std::string>& command, int64_t ranks, std::string& messages) override {
    programs.push_back(command);
    programs.back().push_back(std::to_string(ranks) + " ranks");
    messages = "rank number 1 ended with exit code 4\n";
    return 4;
  }
  std::string own_path() override { return "/bin/meshplan"; }
  std::optional<std::string> variable(const std::string& name) override {
    const auto value = variables.find(name);
    return value == variables.end() ? std::nullopt : std::optional(value->second);
  }
  bool is_terminal(Stream stream) override { return terminals.count(stream) > 0; }
  int64_t terminal_columns() override { return 80; }
  int64_t now_ms() override { return clock += 600; }
};

struct Answer {
  int code = 0;
  std::string out;
  std::string err;
};

inline Answer run(FakeSystem& system, const std::vector<std::string>& words, const std::string& input = {}) {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_cli(words, system, in, out, err);
  return {code, out.str(), err.str()};
}

inline const std::string spec = R"~({
  "schema": "meshplan/spec/1",
  "mesh": {"dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]},
  "redistributions": [
    {"id": "weights", "tensor": {"shape": [8, 8], "dtype": "float32"}, "src": ["S(0)", "S(1)"], "dst": ["R", "S(1)"]
},
    {"id": "loss", "tensor": {"shape": [], "dtype": "float32"}, "src": ["P(sum)", "P(sum)"], "dst": ["R", "R"], "count": 5}
  ]
})~";

}  // namespace meshplan::test
