#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <map>

#include "base/text.h"
#include "cli/man_page.h"

namespace meshplan {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

const CommandDescription* find_command(std::string_view name) {
  for (const CommandDescription& command : command_descriptions()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  auto near = nearest(word, candidates);
  // Letters that changed places ("plna") count as two edits, too many for a short word.
  for (const std::string& candidate : candidates) {
    if (!near && std::is_permutation(word.begin(), word.end(), candidate.begin(), candidate.end()))
      near = candidate;
  }
  return near ? "; did you mean " + *near + "?" : std::string();
}

// Every name of every flag of the command, with whether it takes a value.
std::map<std::string, bool> flag_names(const CommandDescription& command) {
  std::map<std::string, bool> names;
  for (const auto* list : {&command.flags, &common_flag_descriptions()}) {
    for (const FlagDescription& flag : *list) {
      for (const std::string& name : split(flag.names, ',')) names[name] = !flag.value.empty();
    }
  }
  return names;
}

// Words that look like flags but are not, before anything else: CLI11 would call them files.
Status check_flags(const CommandDescription& command, const std::vector<std::string>& words) {
  const auto names = flag_names(command);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return Done{};
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string name = word[1] == '-' ? word.substr(0, word.find('=')) : word.substr(0, 2);
    const auto known = names.find(name);
    if (known == names.end()) {
      std::vector<std::string> candidates;
      for (const auto& [candidate, value] : names) candidates.push_back(candidate);
      const std::string near = suggestion(name, candidates);
      return bad_input(
          "meshplan " + command.name + " has no flag " + name +
          (near.empty() ? "; meshplan " + command.name + " --help lists its flags" : near));
    }
    // The value of a flag may begin with a dash: --max-memory -1.
    if (known->second && word == name) ++i;
  }
  return Done{};
}

// Binds the words of the description table to the fields of Arguments.
class Binder {
 public:
  Binder(CLI::App& app, const CommandDescription& command) : app_(app), command_(command) {}

  template <class Field>
  CLI::Option* value(const char* name, Field& field) {
    const FlagDescription* flag = described(name);
    return flag == nullptr ? nullptr : app_.add_option(flag->names, field)->type_name(flag->value);
  }
  // A name that is one: an empty word is a variable of a shell that was never set.
  template <class Field>
  void named(const char* name, Field& field) {
    CLI::Option* option = value(name, field);
    if (option == nullptr) return;
    option->check([](const std::string& word) {
      return word.empty() ? std::string("its value is empty") : std::string();
    });
  }
  void on(const char* name, bool& field) {
    if (const FlagDescription* flag = described(name)) app_.add_flag(flag->names, field);
  }
  // One of the words that the description lists.
  CLI::Option* choice(const char* name, std::string& field) {
    CLI::Option* option = value(name, field);
    if (option == nullptr) return nullptr;
    const std::vector<std::string> choices = split(described(name)->value, '|');
    option->check([choices](const std::string& word) {
      if (std::find(choices.begin(), choices.end(), word) != choices.end()) return std::string();
      return "expected one of " + join(choices, " ") + ", not \"" + word + "\"" +
             suggestion(word, choices);
    });
    return option;
  }
  void atleast(const char* name, int64_t& field, int64_t least) {
    bounded(value(name, field), least);
  }
  void atleast(const char* name, std::optional<int64_t>& field, int64_t least) {
    bounded(value(name, field), least);
  }

 private:
  static void bounded(CLI::Option* option, int64_t least) {
    if (option == nullptr) return;
    option->check([least](const std::string& word) {
      const auto number = parse_int(word);
      if (number && *number >= least) return std::string();
      const bool beyond = !number && word.find_first_not_of("0123456789") == std::string::npos;
      const std::string limit =
          beyond ? "at most " + std::to_string(INT64_MAX) : "at least " + std::to_string(least);
      return "expected an integer of " + limit + ", not \"" + word + "\"";
    });
  }
  const FlagDescription* described(const char* name) const {
    for (const auto* list : {&command_.flags, &common_flag_descriptions()}) {
      for (const FlagDescription& flag : *list) {
        const auto names = split(flag.names, ',');
        if (std::find(names.begin(), names.end(), name) != names.end()) return &flag;
      }
    }
    return nullptr;
  }
  CLI::App& app_;
  const CommandDescription& command_;
};

// Words given for flags whose values are enumerations.
struct Words {
  std::string color = "auto", diagnostics = "text", costs = "on", data = "exact";
  std::string planner, rules, groups, cost_model;
  bool one_reduction = false, no_merge = false, audit = false;
  std::vector<std::string> warnings;
};

void bind(Binder& bind, Arguments& to, Words& words) {
  bind.named("-o", to.output);
  bind.choice("--format", to.format);
  bind.choice("--color", words.color);
  bind.choice("--diagnostics", words.diagnostics);
  bind.on("--quiet", to.common.quiet);
  bind.on("--verbose", to.common.verbose);
  if (CLI::Option* option = bind.value("-W", words.warnings)) option->allow_extra_args(false);

  bind.choice("--planner", words.planner);
  bind.choice("--rules", words.rules);
  bind.choice("--groups", words.groups);
  bind.choice("--cost-model", words.cost_model);
  bind.named("--topology", to.planning.topology);
  bind.atleast("--ranks-per-host", to.planning.options.ranks_per_host, 1);
  bind.atleast("--max-memory", to.planning.options.max_memory_bytes, -1);
  bind.atleast("--max-groups", to.planning.options.max_groups, 0);
  bind.atleast("--alternatives", to.planning.options.alternatives, 0);
  bind.on("--one-reduction", words.one_reduction);
  bind.on("--no-merge", words.no_merge);
  bind.on("--audit", words.audit);

  bind.choice("--detail", to.detail);
  bind.choice("--costs", words.costs);
  bind.atleast("--top", to.top, 1);
  if (CLI::Option* option = bind.value("--id", to.only)) option->allow_extra_args(false);

  if (CLI::Option* option = bind.value("--fail-on", to.fail_on)) option->allow_extra_args(false);
  bind.choice("--only-if", to.only_if);
  bind.named("--against", to.against);
  bind.on("--new-file", to.new_file);
  bind.on("--git-driver", to.git_driver);
  bind.named("--junit", to.junit);
  bind.named("--record", to.record);
  bind.atleast("--jobs", to.jobs, 1);

  bind.choice("--backend", to.backend);
  bind.on("--shrink", to.shrink);
  bind.on("--full-size", to.full_size);
  bind.choice("--data", words.data);
  bind.atleast("--seed", to.seed, 0);
  if (CLI::Option* option = bind.value("--inject", to.inject)) option->allow_extra_args(false);
  bind.atleast("--launch", to.launch, 1);
  bind.on("--measure", to.measure);
  bind.on("--alone", to.alone);
  bind.atleast("--repeat", to.repeat, 1);
  bind.named("--report", to.report);
  bind.choice("--register", to.buffers);
  bind.on("--graph", to.graph);
  bind.atleast("--deadline", to.deadline, 1);
  bind.named("--timeline", to.timeline);
  bind.named("--nccl-tests", to.nccl_tests);

  bind.value("--ran", to.ran);
  bind.named("--bundle", to.bundle);

  bind.on("--ranks", to.ranks);
  bind.atleast("--rank", to.rank, 0);
}

Status read_warning_policy(const std::vector<std::string>& words, WarningPolicy& policy) {
  const std::vector<std::string> all = warning_words();
  for (const std::string& word : words) {
    if (word == "error") {
      policy.all_errors = true;
    } else if (std::find(all.begin(), all.end(), word) == all.end()) {
      return bad_input("-W: expected one of " + join(all, " ") + ", not \"" + word + "\"" +
                       suggestion(word, all));
    } else if (word[0] == 'n') {
      policy.silenced.push_back(word.substr(3));
    } else {
      policy.errors.push_back(word.substr(6));
    }
  }
  return Done{};
}

Status check_fail_on(const std::vector<std::string>& words) {
  static const std::vector<std::string> conditions = {"slower", "numerics", "warnings", "any"};
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const bool percent =
        word.substr(0, equals) == "slower" && equals != std::string::npos && word.back() == '%' &&
        parse_int(std::string_view(word).substr(equals + 1, word.size() - equals - 2))
                .value_or(-1) >= 0;
    if (percent || std::find(conditions.begin(), conditions.end(), word) != conditions.end())
      continue;
    const bool lacks_percent =
        word.starts_with("slower=") && parse_int(std::string_view(word).substr(7)).has_value();
    return bad_input(
        "--fail-on: expected one of slower slower=N% numerics warnings any, not \"" + word + "\"" +
        (lacks_percent ? "; did you mean " + word + "%?" : suggestion(word, conditions)));
  }
  return Done{};
}

// How many positional words a command takes: least, most.
std::pair<size_t, size_t> input_counts(const std::string& command) {
  if (command == "explain") return {1, 2};
  if (command == "diff") return {1, 2};
  if (command == "check" || command == "calibrate" || command == "transfers") return {1, SIZE_MAX};
  return {1, 1};
}

Status check_inputs(const Arguments& arguments, const CommandDescription& command) {
  auto [least, most] = input_counts(arguments.command);
  const std::string usage = "; usage: meshplan " + command.name + " " + command.inputs;
  if (arguments.command == "calibrate" && !arguments.against.empty()) least = 0;
  if (arguments.command == "diff") least = most = arguments.against.empty() ? 2 : 1;
  // a path alone where it is unmerged; else 7, and 9 where it was renamed
  if (arguments.git_driver) least = 1, most = 9;
  if (arguments.inputs.size() < least) {
    const bool listed = arguments.command == "schema" || arguments.command == "completion";
    return bad_input("meshplan " + command.name + " needs " +
                     (listed       ? "a name"
                      : least == 1 ? "a file"
                                   : "two files") +
                     " and got " + (arguments.inputs.empty() ? "none" : "one") + usage);
  }
  if (arguments.inputs.size() > most)
    return bad_input("meshplan " + command.name + " takes no further argument \"" +
                     arguments.inputs[most] + "\"" + usage);
  const auto is_empty = [](const std::string& word) { return word.empty(); };
  if (std::any_of(arguments.inputs.begin(), arguments.inputs.end(), is_empty) ||
      std::any_of(arguments.ran.begin(), arguments.ran.end(), is_empty)) {
    return bad_input("meshplan " + command.name +
                     ": a name is empty, such as that of a shell's variable that was never set" +
                     usage);
  }
  return Done{};
}

// What stdin has goes to one reader. Behind the plan of explain and transfers come ids.
Status check_stdin(const Arguments& arguments) {
  if (arguments.git_driver) return Done{};
  const bool all_files = arguments.command != "explain" && arguments.command != "transfers";
  std::vector<std::string> files(arguments.inputs.begin(),
                                 all_files ? arguments.inputs.end() : arguments.inputs.begin() + 1);
  files.insert(files.end(), arguments.ran.begin(), arguments.ran.end());
  files.insert(files.end(), {arguments.against, arguments.planning.topology});
  const auto times = std::count(files.begin(), files.end(), "-");
  if (times < 2) return Done{};
  return bad_input("stdin is read once, and \"-\" names it " + std::to_string(times) +
                   " times; write all but one to files");
}

// Old spellings of values that are still accepted: "dearer" for "slower".
void accept_old_spellings(std::vector<std::string>& words) {
  const std::string_view flags[] = {"--fail-on", "--only-if"};
  for (size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view flag : flags) {
      const bool joined = words[i].rfind(std::string(flag) + "=dearer", 0) == 0;
      const bool apart = i > 0 && words[i - 1] == flag && words[i].rfind("dearer", 0) == 0;
      if (joined || apart) words[i].replace(joined ? flag.size() + 1 : 0, 6, "slower");
    }
  }
}

// The text for --help, --version and --help-man in place of a command.
std::optional<std::string> answer_to(const std::vector<std::string>& words) {
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    const std::string text = help_text(words.size() > 1 ? words[1] : "");
    return text.empty() ? help_text("") : text;
  }
  if (words[0] == "--version" || words[0] == "-V") return version_text();
  if (words[0] == "--help-man") return man_page();
  return std::nullopt;
}

// CLI11's messages as one line of ours: "--output: At Most 1 required but received 2", and
// "--output: 1 required PLAN missing".
Error usage_error(const std::string& command, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (!message.empty() && (message.back() == '.' || message.back() == ' ')) message.pop_back();
  const std::string flag = message.substr(0, message.find(':'));
  const std::string before = flag + ": 1 required ";
  const std::string behind = " missing";
  if (message.starts_with(flag + ": At Most 1 required")) {
    message = flag + " is given more than once; give it once";
  } else if (message.starts_with(before) && message.ends_with(behind)) {
    message = flag + " needs a value: " +
              message.substr(before.size(), message.size() - before.size() - behind.size());
  }
  return bad_input("meshplan " + command + ": " + message);
}

}  // namespace

Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Arguments to;
  if (words.empty()) return bad_input("no command given; meshplan --help lists the commands");
  if ((to.answer = answer_to(words))) return to;
  const CommandDescription* command = find_command(words[0]);
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const CommandDescription& each : command_descriptions()) names.push_back(each.name);
    const std::string near = suggestion(words[0], names);
    const std::string help = words[0].starts_with('-')
                                 ? "; flags come behind the command, and meshplan --help lists both"
                                 : "; meshplan --help lists the commands";
    return bad_input("unknown command " + words[0] + (near.empty() ? help : near));
  }
  to.words = words;
  to.command = command->name;
  std::vector<std::string> rest(words.begin() + 1, words.end());
  accept_old_spellings(rest);
  const auto end = std::find(rest.begin(), rest.end(), "--");
  if (std::find(rest.begin(), end, "--help") != end || std::find(rest.begin(), end, "-h") != end) {
    to.answer = help_text(command->name);
    return to;
  }
  if (const auto known = check_flags(*command, rest); !known) return known.error();

  Words given;
  CLI::App app;
  app.set_help_flag();
  app.add_option("inputs", to.inputs);
  Binder binder(app, *command);
  bind(binder, to, given);
  try {
    std::reverse(rest.begin(), rest.end());  // CLI11 takes the words from the back
    app.parse(rest);
  } catch (const CLI::ParseError& error) {
    return usage_error(command->name, error.what());
  }
  to.common.color = given.color == "auto"     ? ColorChoice::automatic
                    : given.color == "always" ? ColorChoice::always
                                              : ColorChoice::never;
  to.common.diagnostics =
      parse_diagnostic_format(given.diagnostics).value_or(DiagnosticFormat::text);
  to.costs = given.costs == "on";
  to.random_data = given.data == "random";
  to.planning.options.planner = parse_planner(given.planner);
  to.planning.options.rules = parse_rules(given.rules);
  to.planning.options.groups = parse_group_policy(given.groups);
  to.planning.options.cost_model = parse_cost_model(given.cost_model);
  if (given.one_reduction) to.planning.options.one_reduction = true;
  if (given.no_merge) to.planning.options.merge = false;
  if (given.audit) to.planning.options.audit = true;
  if (const auto read = read_warning_policy(given.warnings, to.common.warnings); !read)
    return read.error();
  if (const auto read = check_fail_on(to.fail_on); !read) return read.error();
  if (const auto counted = check_inputs(to, *command); !counted) return counted.error();
  if (const auto once = check_stdin(to); !once) return once.error();
  return to;
}

}  // namespace meshplan
