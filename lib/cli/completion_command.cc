// meshplan completion SHELL, and the man page: both are generated from the table of commands.
#include "base/text.h"
#include "cli/commands.h"
#include "cli/man_page.h"
#include "cli/shell_quoted.h"
#include "diag/codes.h"

namespace meshplan {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (true) {
    const size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end - at));
    if (end == std::string::npos) return parts;
    at = end + 1;
  }
}

// The literal words of "greedy|graph|optimal"; empty if the value is a file, a number or a name.
std::vector<std::string> listed(const std::string& value) {
  if (value.find('|') == std::string::npos) return {};
  std::vector<std::string> words;
  for (const std::string& word : split(value, '|')) {
    const bool literal = !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-") ==
                                              std::string::npos;
    if (literal) words.push_back(word);
  }
  return words;
}

// The values of a flag, and whether a file is also possible.
struct Choices {
  std::vector<std::string> words;
  bool files = false;
};
Choices choices_of(const FlagDescription& flag) {
  if (flag.value.empty()) return {};
  Choices choices{flag.words.empty() ? listed(flag.value) : flag.words, false};
  choices.files = choices.words.empty() || flag.value.find("FILE") != std::string::npos;
  return choices;
}

// The values of a positional input: a shell, a schema, the code of a diagnostic.
Choices inputs_of(const CommandDescription& command) {
  Choices choices{listed(command.inputs), false};
  if (command.name == "explain") {
    for (const CodeEntry& entry : code_table()) choices.words.push_back(entry.code);
  }
  choices.files = choices.words.empty() || command.name == "explain";
  return choices;
}

bool repeats(const FlagDescription& flag) {
  return flag.names == "-W" || flag.help.find("may be repeated") != std::string::npos;
}

std::vector<FlagDescription> flags_of(const CommandDescription& command) {
  std::vector<FlagDescription> flags = command.flags;
  flags.insert(flags.end(), common_flag_descriptions().begin(), common_flag_descriptions().end());
  return flags;
}

std::string command_names() {
  std::vector<std::string> names;
  for (const CommandDescription& command : command_descriptions()) names.push_back(command.name);
  return join(names, " ");
}

std::string bash_completion() {
  std::string out =
      "# bash completion of meshplan\n"
      "_meshplan() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words= files=\n"
      "  # readline takes --flag=value for three words\n"
      "  if [ \"$word\" = \"=\" ]; then word=; elif [ \"$before\" = \"=\" ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      command_names() +
      " --help --version --help-man\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$command $before\" in\n";
  for (const CommandDescription& command : command_descriptions()) {
    for (const FlagDescription& flag : flags_of(command)) {
      if (flag.value.empty()) continue;
      const Choices choices = choices_of(flag);
      std::vector<std::string> patterns;
      for (const std::string& name : split(flag.names, ','))
        patterns.push_back("\"" + command.name + " " + name + "\"");
      out += "    " + join(patterns, "|") + ") words=\"" + join(choices.words, " ") + "\"" +
             (choices.files ? " files=1" : "") + " ;;\n";
    }
  }
  out += "    *) case $command in\n";
  for (const CommandDescription& command : command_descriptions()) {
    std::vector<std::string> names;
    for (const FlagDescription& flag : flags_of(command)) {
      for (const std::string& name : split(flag.names, ',')) names.push_back(name);
    }
    const Choices inputs = inputs_of(command);
    out += "      " + command.name + ") if [[ $word == -* ]]; then words=\"" + join(names, " ") +
           "\"; else words=\"" + join(inputs.words, " ") + "\"" + (inputs.files ? " files=1" : "") +
           "; fi ;;\n";
  }
  return out +
         "    esac ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  [ -z \"$files\" ] || COMPREPLY+=($(compgen -f -- \"$word\"))\n"
         "}\n"
         "complete -o filenames -F _meshplan meshplan\n";
}

std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// What _arguments does for a value: words, files, or either (where its colons are not those that
// part the specification).
std::string zsh_action(const Choices& choices) {
  if (choices.words.empty()) return "_files";
  const std::string words = "(" + join(choices.words, " ") + ")";
  return choices.files ? "{_alternative \"words\\:word\\:" + words + "\" \"files\\:file\\:_files\"}"
                       : words;
}

std::string zsh_completion() {
  std::string out =
      "#compdef meshplan\n# zsh completion of meshplan\n_meshplan() {\n  local -a commands=(\n";
  for (const CommandDescription& command : command_descriptions()) {
    out += "    " + shell_quoted(command.name + ":" + zsh_text(command.summary)) + "\n";
  }
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const CommandDescription& command : command_descriptions()) {
    out += "    " + command.name + ") _arguments";
    for (const FlagDescription& flag : flags_of(command)) {
      const auto names = split(flag.names, ',');
      for (const std::string& name : names) {
        // A flag is offered once, under one of its names, unless it may be repeated; long ones take
        // --flag=value too.
        std::string spec = repeats(flag)      ? "*"
                           : names.size() > 1 ? "(" + join(names, " ") + ")"
                                              : "";
        spec += name +
                (flag.value.empty() ? ""
                 : name[1] == '-'   ? "="
                                    : "+") +
                "[" + zsh_text(flag.help) + "]";
        if (!flag.value.empty())
          spec += ":" + zsh_text(flag.value) + ":" + zsh_action(choices_of(flag));
        out += " \\\n      " + shell_quoted(spec);
      }
    }
    out += " \\\n      " +
           shell_quoted("*:" + zsh_text(command.inputs) + ":" + zsh_action(inputs_of(command))) +
           " ;;\n";
  }
  return out + "  esac\n}\n_meshplan \"$@\"\n";
}

std::string fish_completion() {
  std::string out =
      "# fish completion of meshplan\n"
      "function __meshplan_command\n"
      "    set -l words (commandline -opc)\n"
      "    test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
      "end\n";
  for (const CommandDescription& command : command_descriptions()) {
    out += "complete -c meshplan -n __fish_use_subcommand -f -a " + command.name + " -d " +
           shell_quoted(command.summary) + "\n";
  }
  for (const CommandDescription& command : command_descriptions()) {
    const std::string when =
        "complete -c meshplan -n " + shell_quoted("__meshplan_command " + command.name);
    const Choices inputs = inputs_of(command);
    if (!inputs.words.empty())
      out += when + (inputs.files ? "" : " -f") + " -a " + shell_quoted(join(inputs.words, " ")) +
             "\n";
    for (const FlagDescription& flag : flags_of(command)) {
      out += when;
      for (const std::string& name : split(flag.names, ',')) {
        out += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      const Choices choices = choices_of(flag);
      if (!choices.words.empty()) {
        out += (choices.files ? " -r -a " : " -x -a ") + shell_quoted(join(choices.words, " "));
      } else if (!flag.value.empty()) {
        out += " -r";
      }
      out += " -d " + shell_quoted(flag.help) + "\n";
    }
  }
  return out;
}

// Escapes text for roff: no line may begin with a dot or a quote.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string roff_flags(const std::vector<FlagDescription>& flags) {
  std::string out;
  for (const FlagDescription& flag : flags) {
    out += ".TP\n\\fB" + roff(join(split(flag.names, ','), ", ")) + "\\fR";
    if (!flag.value.empty()) out += " \\fI" + roff(flag.value) + "\\fR";
    out += "\n" + roff(flag.help) + "\n";
  }
  return out;
}

}  // namespace

std::string man_page() {
  std::string out =
      ".TH MESHPLAN 1 \"\" \"" + roff(version_text().substr(0, version_text().size() - 1)) +
      "\"\n.SH NAME\nmeshplan \\- " +
      "plan how sharded tensors move between layouts on a device mesh\n.SH SYNOPSIS\n\\fBmeshplan\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR]\n";
  out += ".SH COMMANDS\n";
  for (const CommandDescription& command : command_descriptions()) {
    out += ".SS meshplan " + roff(command.name + " " + command.inputs) + "\n" +
           roff(command.summary) + "\n.PP\n.nf\n";
    for (const std::string& example : command.examples) out += roff(example) + "\n";
    out += ".fi\n" + roff_flags(command.flags);
  }
  out += ".SH FLAGS OF EVERY COMMAND\n" + roff_flags(common_flag_descriptions());
  out += ".SH EXIT STATUS\n";
  const std::pair<const char*, const char*> codes[] = {
      {"0", "done, no difference"},
      {"1", "a difference was found, a budget exceeded, or a condition of --fail-on holds"},
      {"2", "bad usage or bad input; nothing was written"},
      {"3", "no plan exists"},
      {"4", "replay or verification found wrong data"},
      {"5", "a requirement is missing on this machine"},
      {"70", "a bug in meshplan itself"}};
  for (const auto& [code, meaning] : codes)
    out += std::string(".TP\n") + code + "\n" + roff(meaning) + "\n";
  return out;
}

int completion_command(Context& context, const Arguments& arguments) {
  const std::string& shell = arguments.inputs[0];
  std::string text;
  if (shell == "bash") text = bash_completion();
  if (shell == "zsh") text = zsh_completion();
  if (shell == "fish") text = fish_completion();
  if (text.empty())
    return context.fail("", bad_input("no completions for shell \"" + shell + "\""));
  return context.finish("-", text);
}

}  // namespace meshplan
