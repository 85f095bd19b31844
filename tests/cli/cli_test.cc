// The command line against an outside world in memory: what is read, written and answered, and that nothing is written on errors.
#include "cli/cli.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/arguments.h"

namespace meshplan {
namespace {

// Files in memory; records what was asked of it.
class FakeSystem : public System {
 public:
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> variables;
  std::set<Stream> terminals;
  std::vector<std::string> writes;
  std::vector<std::vector<std::string>> programs;
  std::string program_output;
  bool broken = false;  // every read throws
  bool full = false;    // no read finds memory
  int64_t clock = 0;

  Result<std::string> read_file(const std::string& path) override {
    if (broken) throw std::logic_error("the fake is broken");
    if (full) throw std::bad_alloc();
    const auto file = files.find(path);
    if (file == files.end()) return bad_input("cannot read " + path + ": No such file or directory");
    return file->second;
  }
  Status write_file(const std::string& path, const std::string& text) override {
    writes.push_back(path);
    files[path] = text;
    return Done{};
  }
  bool same_file(const std::string& a, const std::string& b) override { return a == b && files.count(a) > 0; }
  bool is_folder(const std::string& path) override {
    return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.first.rfind(path + "/", 0) == 0; });
  }
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
  Error become(const std::vector<std::string>& command) override {
    programs.push_back(command);
    return environment("cannot run " + command[0]);
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

Answer run(FakeSystem& system, const std::vector<std::string>& words, const std::string& input = {}) {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_cli(words, system, in, out, err);
  return {code, out.str(), err.str()};
}

const std::string spec = R"~({
  "schema": "meshplan/spec/1",
  "mesh": {"dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]},
  "redistributions": [
    {"id": "weights", "tensor": {"shape": [8, 8], "dtype": "float32"}, "src": ["S(0)", "S(1)"], "dst": ["R", "S(1)"]
},
    {"id": "loss", "tensor": {"shape": [], "dtype": "float32"}, "src": ["P(sum)", "P(sum)"], "dst": ["R", "R"], "count": 5}
  ]
})~";

TEST_CASE("plan writes to stdout or to a file, and what it writes is read again") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  const Answer to_stdout = run(system, {"plan", "spec.json", "-q"});
  CHECK(to_stdout.code == 0);
  CHECK(system.writes.empty());
  const Answer to_file = run(system, {"plan", "spec.json", "-o", "plan.json"});
  CHECK(to_file.code == 0);
  CHECK(to_file.out.empty());
  CHECK(system.files["plan.json"] == to_stdout.out);
  CHECK(run(system, {"plan", "-", "-q"}, spec).out == to_stdout.out);
  CHECK(run(system, {"verify", "plan.json"}).code == 0);
  CHECK(run(system, {"verify", "-"}, to_stdout.out).code == 0);
  CHECK(run(system, {"show", "plan.json", "--format", "json"}).out == to_stdout.out);
  CHECK(run(system, {"run", "plan.json"}).code == 0);
  CHECK(run(system, {"diff", "plan.json", "spec.json"}).code == 0);
  CHECK(run(system, {"check", "spec.json", "plan.json"}).code == 0);
}

TEST_CASE("nothing is written when something is wrong") {
  FakeSystem system;
  system.files["bad.json"] = "{\"schema\": \"meshplan/spec/1\", \"mehs\": {}}";
  system.files["spec.json"] = spec;
  struct Story {
    std::vector<std::string> words;
    int code;
  };
  for (const Story& s : std::vector<Story>{
           {{"plan", "bad.json", "-o", "out"}, 2},
           {{"plan", "nowhere.json", "-o", "out"}, 2},
           {{"plan", "spec.json", "-o", "out", "--planner", "gready"}, 2},
           {{"plan", "spec.json", "-o", "out", "-W", "error"}, 1},
           {{"plan", "spec.json", "-o", "out", "--topology", "nowhere.json"}, 2},
           {{"show", "spec.json", "-o", "out"}, 2},
       }) {
    CAPTURE(s.words);
    const Answer answer = run(system, s.words);
    CHECK(answer.code == s.code);
    CHECK(answer.out.empty());
    CHECK(!answer.err.empty());
    CHECK(system.writes.empty());
  }
}

TEST_CASE("an output that is an input or another output is refused before anything is done") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  system.files["topology.json"] = R"({"levels": [{"ranks": 4, "gb_per_s": 1, "latency_ns": 1}]})";
  REQUIRE(run(system, {"plan", "spec.json", "-o", "plan.json", "-q"}).code == 0);
  const auto files = system.files;
  struct Story {
    std::vector<std::string> words;
    std::string part;
  };
  for (const Story& s : std::vector<Story>{
           {{"plan", "spec.json", "-o", "spec.json"}, "--output spec.json would overwrite the input spec.json; write to another file"},
           {{"plan", "spec.json", "--topology", "topology.json", "-o", "topology.json"}, "overwrite the input topology.json"},
           {{"show", "plan.json", "--output=plan.json"}, "overwrite the input plan.json"},
           {{"diff", "plan.json", "spec.json", "-o", "spec.json"}, "overwrite the input spec.json"},
           {{"check", "spec.json", "plan.json", "--junit", "plan.json"}, "--junit plan.json would overwrite the input plan.json"},
           {{"run", "plan.json", "--report", "plan.json"}, "--report plan.json would overwrite the input plan.json"},
           {{"run", "plan.json", "--measure", "--report", "new", "--timeline", "new"}, "--timeline new would overwrite what --report"},
       }) {
    CAPTURE(s.words);
    const Answer answer = run(system, s.words);
    CHECK(answer.code == 2);
    CHECK(answer.err.find("error[E0601]: ") == 0);
    CHECK(answer.err.find(s.part) != std::string::npos);
    CHECK(system.files == files);
  }
}

TEST_CASE("stdin is read up to the limit that holds for files") {
  FakeSystem system;
  // A stream that never ends and holds nothing but blanks.
  struct Endless : std::streambuf {
    std::array<char, 1 << 16> blanks{};
    size_t given = 0;
    Endless() { blanks.fill(' '); }
    int_type underflow() override {
      given += blanks.size();
      setg(blanks.data(), blanks.data(), blanks.data() + blanks.size());
      return ' ';
    }
  } endless;
  std::istream in(&endless);
  std::ostringstream out;
  std::ostringstream err;
  CHECK(run_cli({"plan", "-"}, system, in, out, err) == 2);
  CHECK(err.str().find("cannot read stdin: larger than the limit of 512 MiB") != std::string::npos);
  CHECK(endless.given < max_input_bytes + (1 << 20));
}

TEST_CASE("a bad file named twice is refused twice and reported once") {
  FakeSystem system;
  system.files["bad.json"] = "{\"schema\": \"meshplan/spec/1\", \"mesh\": {\"dims\": [{\"name\": \"dp\", \"siz\": 2}]}}";
  for (const std::string command : {"diff", "check"}) {
    const Answer answer = run(system, {command, "bad.json", "bad.json"});
    CHECK(answer.code == 2);
    CHECK(answer.err.find("error[E0203]") == 0);
    CHECK(answer.err.find("error[", 1) == std::string::npos);
  }
}

TEST_CASE("a bug inside ends with a sentence and exit 70") {
  FakeSystem system;
  system.broken = true;
  const Answer answer = run(system, {"plan", "spec.json"});
  CHECK(answer.code == 70);
  CHECK(answer.err.find("error[E0699]: this is a bug in meshplan") == 0);
  CHECK(run(system, {"plan", "spec.json", "--diagnostics", "json"}).err.find("{\"code\": \"E0699\"") != std::string::npos);
  CHECK(answer.err.find("the fake is broken") != std::string::npos);
  CHECK(answer.out.empty());
}

TEST_CASE("memory that is not there is no bug: exit 5") {
  FakeSystem system;
  system.full = true;
  const Answer answer = run(system, {"plan", "spec.json"});
  CHECK(answer.code == 5);
  CHECK(answer.err.find("error[E0602]: not enough memory for this request") == 0);
}

std::string mesh_of(const std::string& sizes) {
  std::string dims;
  std::istringstream list(sizes);
  int64_t n = 0;
  for (std::string size; list >> size; ++n) {
    dims += (n > 0 ? ", " : "") + ("{\"name\": \"d" + std::to_string(n) + "\", \"size\": " + size + "}");
  }
  return R"({"schema": "meshplan/spec/1", "mesh": {"dims": [)" + dims + R"(]}, "redistributions": [
      {"id": "x", "tensor": {"shape": [64], "dtype": "float32"}, "src": ["R", "R"], "dst": ["R", "R"]}]})";
}

TEST_CASE("what would be made of every rank is refused by number before it is made") {
  FakeSystem system;
  system.files["large.json"] = mesh_of("65536 4");
  system.files["largest.json"] = mesh_of("1099511627776 1048576");
  for (const char* name : {"large", "largest"}) {
    REQUIRE(run(system, {"plan", name + std::string(".json"), "-o", name, "-q"}).code == 0);
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{}, {"--measure"}, {"--shrink"}}) {
      std::vector<std::string> words = {"run", name};
      words.insert(words.end(), more.begin(), more.end());
      const Answer ran = run(system, words);
      CHECK(ran.code == 5);
      CHECK(ran.err.find("ranks, the host backend supports at most 65,536; ") != std::string::npos);
    }
  }
  CHECK(run(system, {"run", "large"}).err.find("the plan has 262,144 ranks") != std::string::npos);
  std::string one_group = mesh_of("8192");
  one_group.replace(one_group.find("\"src\""), std::string::npos, R"~("src": ["P(max)"], "dst": ["R"]}]})~");
  system.files["pairs.json"] = one_group;
  REQUIRE(run(system, {"plan", "pairs.json", "--planner", "greedy", "-o", "pairs", "-q"}).code == 0);
  const Answer pairs = run(system, {"run", "pairs"});
  CHECK(pairs.code == 5);
  CHECK(pairs.err.find("groups of 8,192 ranks are 67,108,864 pairs of ranks in total, the host backend supports at most 16,777,216; ") !=
        std::string::npos);
  const Answer mpi = run(system, {"run", "largest", "--backend", "mpi"});
  CHECK(mpi.code == 5);
  CHECK(mpi.err.find("the mpi backend supports at most 1,048,576; ") != std::string::npos);
  for (const char* format : {"text", "json"}) {
    const Answer listed = run(system, {"mesh", "largest.json", "--ranks", "--format", format});
    CHECK(listed.code == 2);
    CHECK(listed.err.find("--ranks is limited to worlds of 1,048,576 ranks, this one has 1,152,921,504,606,846,976; ") !=
          std::string::npos);
    CHECK(run(system, {"mesh", "largest.json", "--rank", "17", "--format", format}).code == 0);
  }
}

TEST_CASE("colours follow the flag, then NO_COLOR, then the terminal") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  const auto colored = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"show", "plan.json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(system, words).out.find('\x1b') != std::string::npos;
  };
  CHECK(!colored({}));
  CHECK(colored({"--color", "always"}));
  system.terminals = {Stream::out};
  CHECK(colored({}));
  CHECK(!colored({"--color", "never"}));
  system.variables["NO_COLOR"] = "1";
  CHECK(!colored({}));
  CHECK(colored({"--color=always"}));
}

TEST_CASE("tables fit the terminal and keep to ASCII where the locale does") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  system.terminals = {Stream::out};
  system.variables["NO_COLOR"] = "1";
  std::istringstream lines(run(system, {"show", "plan.json"}).out);
  std::string line;
  size_t rows = 0;
  while (std::getline(lines, line) && !line.empty()) ++rows;
  while (std::getline(lines, line) && !line.empty()) {
    CHECK(line.size() <= 80);
    CHECK(std::all_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
    ++rows;
  }
  CHECK(rows > 5);
}

TEST_CASE("diff asks git for the old side without a shell") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  system.program_output = system.files["plan.json"];
  CHECK(run(system, {"diff", "plan.json", "--against", "git:main:plans/a;b.json"}).code == 0);
  REQUIRE(system.programs.size() == 1);
  CHECK(system.programs[0] == std::vector<std::string>{"git", "show", "main:./plans/a;b.json"});
  CHECK(run(system, {"diff", "plan.json", "--against", "git:--output=x:plan.json"}).code == 2);
  CHECK(system.programs.size() == 1);
}

TEST_CASE("as a driver of git diff it names the file, shows colours in git's pager and never fails for what a file holds") {
  FakeSystem system;
  system.files["spec.json"] = spec;
  run(system, {"plan", "spec.json", "-o", "plan.json", "-q"});
  system.files["broken.json"] = "{\"schema\": \"meshplan/plan/1\"";
  const auto driven = [&](const std::string& old_file, const std::string& new_file) {
    return run(system, {"diff", "--git-driver", "a b.json", old_file, "1234", "100644", new_file, "5678", "100644"});
  };
  CHECK(driven("plan.json", "plan.json").out == "meshplan diff a/a b.json b/a b.json\n");
  const std::string added = driven("/dev/null", "plan.json").out;
  CHECK(added.find("\ndearer: 2 redistributions differ of 2\n") != std::string::npos);
  CHECK(added.find('\x1b') == std::string::npos);
  CHECK(driven("plan.json", "/dev/null").out.find("\ncheaper: 2 redistributions differ of 2\n") != std::string::npos);
  const Answer broken = driven("plan.json", "broken.json");
  CHECK(broken.code == 0);
  CHECK(broken.err.find("error[E0104]") == 0);
  CHECK(run(system, {"diff", "--git-driver", "a.json"}).out == "meshplan diff a/a.json b/a.json\nunmerged\n");
  CHECK(run(system, {"diff", "--git-driver", "a", "plan.json", "1", "2", "plan.json", "3", "4", "b", "renamed"}).out ==
        "meshplan diff a/a b/b\n");
  system.variables["GIT_PAGER_IN_USE"] = "true";
  CHECK(driven("/dev/null", "plan.json").out.find("\x1b[1mmeshplan diff") == 0);
  system.variables["NO_COLOR"] = "1";
  CHECK(driven("/dev/null", "plan.json").out == added);
}

TEST_CASE("check pairs the specs of a folder with the plans beside them, in stable order") {
  FakeSystem system;
  for (const char* name : {"d/b.json", "d/a.json", "d/c.json"}) system.files[name] = spec;
  run(system, {"plan", "d/a.json", "-o", "d/a.plan.json", "-q"});
  system.files["d/b.plan.json"] = "{}";
  const Answer answer = run(system, {"check", "d", "-W", "no-missing-flatten"});
  CHECK(answer.code == 2);
  CHECK(answer.out ==
        "ok    d/a.json: plans, d/a.plan.json is current\nfails d/b.json: d/b.plan.json cannot be read\nok    d/c.json: plans\n");
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

TEST_CASE("every flag of every command is described, parsed and completed") {
  FakeSystem system;
  const std::string bash = run(system, {"completion", "bash"}).out;
  const std::string fish = run(system, {"completion", "fish"}).out;
  const std::string man = run(system, {"--help-man"}).out;
  for (const CommandDescription& command : command_descriptions()) {
    CAPTURE(command.name);
    CHECK(!command.examples.empty());
    CHECK(help_text(command.name).rfind("Examples:\n  ", 0) == 0);
    CHECK(bash.find(command.name) != std::string::npos);
    CHECK(man.find("meshplan " + command.name) != std::string::npos);
    for (const FlagDescription& flag : command.flags) {
      CAPTURE(flag.names);
      const std::string name = flag.names.substr(flag.names.rfind(',') + 1);
      CHECK(help_text(command.name).find(name) != std::string::npos);
      CHECK(bash.find(name) != std::string::npos);
      CHECK(fish.find(" -l " + name.substr(2)) != std::string::npos);
      // A flag that the table describes and the parser does not bind is an unknown word to CLI11.
      std::vector<std::string> words = {command.name, "x", name};
      if (!flag.value.empty())
        words.push_back(flag.value == "N" || flag.value == "K" || flag.value == "R" || flag.value == "BYTES"
                            ? "1"
                            : flag.value.substr(0, flag.value.find_first_of("|[")));
      if (command.name == "diff" && name != "--against") words.insert(words.begin() + 2, "y");
      const auto parsed = parse_arguments(words);
      CHECK_MESSAGE(parsed.ok(), (parsed.ok() ? "" : parsed.error().message));
    }
  }
}

TEST_CASE("old spellings of option values are accepted") {
  const auto apart = parse_arguments({"diff", "a", "b", "--fail-on", "dearer=5%", "--only-if", "dearer"});
  REQUIRE(apart.ok());
  CHECK(apart->fail_on == std::vector<std::string>{"slower=5%"});
  CHECK(apart->only_if == "slower");
  const auto joined = parse_arguments({"diff", "a", "b", "--fail-on=dearer", "--only-if=dearer"});
  REQUIRE(joined.ok());
  CHECK(joined->fail_on == std::vector<std::string>{"slower"});
  CHECK(joined->only_if == "slower");
}

TEST_CASE("--launch starts the same command without itself, by mpirun or from here, and gives its exit code") {
  FakeSystem system;
  const auto nccl = run(system, {"run", "p.json", "--launch", "4", "--backend", "nccl", "--shrink"});
  CHECK(nccl.code == 4);
  CHECK(nccl.err.find("rank number 1 ended with exit code 4") != std::string::npos);
  CHECK(run(system, {"run", "p.json", "--launch=2", "--backend", "mpi"}).code == 5);
  CHECK(system.programs ==
        std::vector<std::vector<std::string>>{{"/bin/meshplan", "run", "p.json", "--backend", "nccl", "--shrink", "4 ranks"},
                                              {"mpirun", "-n", "2", "/bin/meshplan", "run", "p.json", "--backend", "mpi"}});
  CHECK(run(system, {"run", "p.json", "--launch", "2"}).code == 2);
}

// Whether the text has a control character other than its line ends, or a line that GitHub would take for a command and that is not ours.
std::string harm_in(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return "a stray byte at " + std::to_string(at);
    if (text[at] != '\n' && is_control(text, at, length)) return "a control character at " + std::to_string(at);
    at += length;
  }
  return text.find("\n::error::forged") == std::string::npos && text.rfind("::error::forged", 0) != 0 ? "" : "a forged line";
}

TEST_CASE("names from a file reach no terminal and no log as they are") {
  const std::string evil = R"~(\u001b[2Jx\n::error::forged\r\u0007\u009b1m\u202e)~";
  const auto hostile = [&](const std::string& extent) {
    return R"~({"schema": "meshplan/spec/1", "meshes": [{"name": "m)~" + evil + R"~(", "world": 4, "dims": [
      {"name": "a)~" +
           evil + R"~(", "size": 2}, {"name": "b)~" + evil + R"~(", "size": 2}]}],
      "topology": {"name": "t)~" +
           evil + R"~(", "levels": [{"name": "l)~" + evil + R"~(", "ranks": 4, "gb_per_s": 1, "latency_ns": 1}]},
      "redistributions": [{"id": "i)~" +
           evil + R"~(", "mesh": "m)~" + evil + R"~(", "tensor": {"shape": [)~" + extent + R"~(], "dtype": "float32"},
      "src": ["P(sum)", "P(sum)"], "dst": ["R", "R"]},
      {"id": "j)~" +
           evil + R"~(", "mesh": "m)~" + evil + R"~(", "tensor": {"shape": [8], "dtype": "float32"},
      "src": ["S(0)", "R"], "dst": ["R", "S(0)"]}],
      "budgets": {"redistributions": [{"id": "i)~" +
           evil + R"~(", "wire_bytes": 0}]}})~";
  };
  FakeSystem system;
  system.files["spec.json"] = hostile("8");
  system.files["other.json"] = hostile("16");
  system.files["bad.json"] = hostile("\"" + evil + "\"");
  REQUIRE(run(system, {"plan", "spec.json", "-o", "plan.json", "--alternatives", "2", "--audit"}).code == 0);
  std::vector<std::vector<std::string>> commands = {
      {"plan", "spec.json", "-o", "again.json", "--max-groups", "1", "--groups", "any", "--verbose"},
      {"plan", "bad.json"},
      {"show", "plan.json", "--id", "i\x1b[1m\n::error::forged"},
      {"explain", "plan.json"},
      {"explain", "plan.json",
       "i\x1b[2Jx\n::error::forged\r\a\xc2\x9b"
       "1m\xe2\x80\xae"},
      {"check", "spec.json", "plan.json"},
      {"check", "other.json", "plan.json", "--junit", "-"},
      {"verify", "plan.json"},
      {"run", "plan.json"},
      {"run", "plan.json", "--inject", "0:1:flip"},
      {"run", "plan.json", "--measure", "--repeat", "2"},
      {"run", "plan.json", "--against", "plan.json", "--repeat", "2"},
      {"mesh", "spec.json", "--ranks"},
      {"plan", "\x1b[2Jx\n::error::forged"},
      {"pl\x1b[2J\n::error::forged"},
  };
  for (const char* format : {"text", "markdown", "torch", "svg", "html", "mermaid", "dot"}) {
    for (const char* detail : {"summary", "full"}) commands.push_back({"show", "plan.json", "--format", format, "--detail", detail});
  }
  for (const char* format : {"text", "markdown", "github"}) {
    commands.push_back({"diff", "spec.json", "other.json", "--format", format, "--detail", "full"});
  }
  for (const std::vector<std::string>& words : commands) {
    for (const char* diagnostics : {"text", "github"}) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--diagnostics", diagnostics});
      const std::string command = join(all, " ");
      CAPTURE(command);
      const Answer answer = run(system, all);
      CHECK(answer.code != 70);
      CHECK(harm_in(answer.out) == "");
      CHECK(harm_in(answer.err) == "");
      CHECK(!(answer.out + answer.err).empty());
    }
  }
}

TEST_CASE("flags beat the options of the spec") {
  FakeSystem system;
  std::string greedy = spec;
  greedy.insert(greedy.rfind('}'), ", \"options\": {\"planner\": \"greedy\", \"rules\": \"dtensor\"}");
  system.files["spec.json"] = greedy;
  const auto planned_by = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"plan", "spec.json", "--format", "text", "-W", "no-missing-flatten"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string out = run(system, words).out;
    const size_t at = out.find("planner ");
    return out.substr(at, out.find(", groups", at) - at);
  };
  CHECK(planned_by({}) == "planner greedy, rules dtensor");
  CHECK(planned_by({"--planner", "optimal"}) == "planner optimal, rules native");
  CHECK(planned_by({"--rules", "native"}) == "planner optimal, rules native");
  CHECK(planned_by({"--planner", "graph"}) == "planner graph, rules dtensor");
}

}  // namespace
}  // namespace meshplan
