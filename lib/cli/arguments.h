// The parsed command line: one struct for all commands, and descriptions of the commands for help,
// completion and the man page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/context.h"
#include "tensor/request.h"

namespace meshplan {

struct PlanningFlags {
  GivenOptions options;  // these override the options of the spec
  std::string topology;  // a preset's name or a file; empty: the spec's
};

struct Arguments {
  std::vector<std::string> words;   // as given
  std::string command;              // "plan"; empty: none was given
  std::vector<std::string> inputs;  // positional, in order
  std::string output;               // -o
  // --format, checked against the command's list; empty: the command's default
  std::string format;
  CommonFlags common;
  PlanningFlags planning;

  // Help and version end the run with exit 0: the text to print.
  std::optional<std::string> answer;

  // show, diff
  std::string detail;
  bool costs = true;
  int64_t top = 0;
  // diff
  std::vector<std::string> fail_on;
  std::string only_if;
  bool new_file = false;
  bool git_driver = false;
  std::string against;  // diff: git:REF:PATH; run: a plan to measure against
  // check
  std::string junit;
  std::optional<std::string> record;  // the command that records
  int64_t jobs = 0;                   // 0: as many as there are cores
  // run
  std::string backend = "host";
  bool shrink = false;
  bool full_size = false;
  bool random_data = false;
  bool measure = false;
  bool alone = false;
  int64_t launch = 0;
  int64_t seed = 1;
  int64_t repeat = 0;
  std::vector<std::string> inject;
  std::vector<std::string> only;
  int64_t deadline = 0;  // seconds; 0: the default
  bool graph = false;
  std::string report;
  std::string timeline;
  std::string nccl_tests;
  std::string buffers;
  // transfers
  std::string bundle;
  // compare
  std::vector<std::string> ran;
  // mesh
  bool ranks = false;
  std::optional<int64_t> rank;
};

struct FlagDescription {
  std::string names;  // "-o,--output"
  std::string value;  // "FILE", "declared|any"; empty: a switch
  std::string help;
  std::vector<std::string> words = {};  // for completion, where `value` does not list them
};
struct CommandDescription {
  std::string name;
  std::string inputs;  // "SPEC", "OLD NEW"
  std::string summary;
  // "meshplan plan spec.json", a blank-separated remark behind "#"
  std::vector<std::string> examples;
  std::vector<FlagDescription> flags;
};

// Bad usage is an error (exit 2) with a suggestion.
[[nodiscard]] Result<Arguments> parse_arguments(const std::vector<std::string>& arguments);

// The commands in the order of the help; flags that every command takes are described apart.
[[nodiscard]] const std::vector<CommandDescription>& command_descriptions();
[[nodiscard]] const std::vector<FlagDescription>& common_flag_descriptions();
// What -W takes: "error", "error=missing-flatten", ..., "no-missing-flatten", ...
[[nodiscard]] std::vector<std::string> warning_words();

// The text of --help, starting with examples; empty name: the overview.
[[nodiscard]] std::string help_text(const std::string& command);
[[nodiscard]] std::string version_text();

}  // namespace meshplan
