#include "cli/record_again.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/shell_quoted.h"
#include "json/scan.h"

namespace meshplan {
namespace {

constexpr size_t most_lines = 20;  // of what a failed command printed
constexpr size_t longest_line = 300;

// The words of a command without anything that only a shell does: no expansions, no redirections.
std::optional<std::vector<std::string>> plain_words(const std::string& command) {
  std::vector<std::string> words;
  bool open = false;  // a word has begun
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == ' ' || c == '\t') {
      open = false;
      continue;
    }
    if (std::strchr("|&;<>()$`*?[]{}~#!\n", c) != nullptr) return std::nullopt;
    if (!open) words.emplace_back();
    open = true;
    if (c == '\\') {
      if (++i == command.size()) return std::nullopt;
      words.back() += command[i];
    } else if (c == '\'' || c == '"') {
      const size_t end = command.find(c, i + 1);
      if (end == std::string::npos) return std::nullopt;
      const std::string_view inside = std::string_view(command).substr(i + 1, end - i - 1);
      if (c == '"' && inside.find_first_of("$`\\") != std::string_view::npos) return std::nullopt;
      words.back() += inside;
      i = end;
    } else {
      words.back() += c;
    }
  }
  return words;
}

bool is_python(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return name.rfind("python", 0) == 0 &&
         name.find_first_not_of("0123456789.", std::strlen("python")) == std::string::npos;
}

// Of `python FLAGS PROGRAM ARGUMENTS`, the index of PROGRAM; 0: it is no such command.
size_t program_of(const std::vector<std::string>& words) {
  if (words.empty() || !is_python(words[0])) return 0;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.empty() || word[0] != '-') return word.empty() ? 0 : i;
    if (word.rfind("--", 0) == 0) continue;
    if (word == "-W" || word == "-X") {
      ++i;
    } else if (word[1] != 'W' && word[1] != 'X' && word.find_first_of("cm") != std::string::npos) {
      return 0;  // -c CODE, -m MODULE
    }
  }
  return 0;
}

std::string quoted(const std::string& word) {
  const char* const plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  return shell_quoted(word);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text.find_first_not_of(" \t\r", at) < end)
      lines.push_back(printable(std::string_view(text).substr(at, end - at), longest_line));
    at = end + 1;
  }
  if (lines.size() > most_lines)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(most_lines));
  return lines;
}

bool says(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

// Why the command gave no spec; nullopt: it gave one.
std::optional<Error> failure_of(const std::string& command, const FileWriting& done,
                                const std::vector<std::string>& lines) {
  const std::string it = "--record: '" + command + "' ";
  const std::string last = lines.empty() ? std::string() : ": " + lines.back();
  if (done.signal != 0) {
    return bad_input(it + "was ended by signal " + std::to_string(done.signal) + " (" +
                     ::strsignal(done.signal) + ")");  // NOLINT(concurrency-mt-unsafe)
  }
  if (done.exit_code != 0) {
    if (says(done.said, "No module named meshplan") || says(done.said, "No module named 'meshplan"))
      return environment(it + "needs the Python package meshplan: pip install ./apps/python");
    if (says(done.said, "No module named 'torch'"))
      return environment(it + "needs PyTorch, whose programs meshplan.capture records");
    if (done.exit_code == 126 || done.exit_code == 127)
      return environment(it + "cannot be run" + last);
    return bad_input(it + "ended with exit code " + std::to_string(done.exit_code) + last);
  }
  if (!done.file) {
    return bad_input(it + "wrote no spec; a command other than python must write it to $" +
                     record_variable +
                     ", as meshplan.capture.record does for a file of the same name");
  }
  return std::nullopt;
}

}  // namespace

RecordedBy recorded_by(const std::string& spec, int64_t ranks) {
  RecordedBy by;
  by.world = ranks;
  Diagnostics reported_already(0);
  const auto document = read_json(spec, {}, reported_already);
  if (!document || document->nodes.empty()) return by;
  const uint32_t notes = find_key(*document, 0, "x-recorded");
  if (notes == 0 || document->nodes[notes].kind != JsonKind::object) return by;
  const auto number = [&](const char* key, int64_t otherwise) {
    const uint32_t node = find_key(*document, notes, key);
    return node == 0 ? otherwise : integer_of(*document, document->nodes[node]).value_or(otherwise);
  };
  by.world = number("world", ranks);
  by.rank = number("rank", 0);
  by.read_integer = number("read-integer", 1);
  const uint32_t real = find_key(*document, notes, "real-tensors");
  by.real_tensors = real != 0 && document->nodes[real].truth;
  return by;
}

std::vector<std::string> recording_words(const std::string& command, const RecordedBy& by,
                                         const std::string& path) {
  const auto words = plain_words(command);
  const size_t program = words ? program_of(*words) : 0;
  if (program == 0) return {"/bin/sh", "-c", command};
  const auto split = words->begin() + static_cast<std::ptrdiff_t>(program);
  std::vector<std::string> all(words->begin(), split);
  for (const char* word : {"-m", "meshplan.capture", "--world"}) all.emplace_back(word);
  all.push_back(std::to_string(by.world));
  if (by.rank != 0) {
    all.emplace_back("--rank");
    all.push_back(std::to_string(by.rank));
  }
  if (by.real_tensors) all.emplace_back("--real-tensors");
  if (by.read_integer != 1) {
    all.emplace_back("--read-integer");
    all.push_back(std::to_string(by.read_integer));
  }
  all.emplace_back("-o");
  all.push_back(path);
  all.insert(all.end(), split, words->end());
  return all;
}

std::string recording_command(const std::string& command, const RecordedBy& by,
                              const std::string& path) {
  const auto words = recording_words(command, by, path);
  if (words[0] == "/bin/sh")
    return "export " + std::string(record_variable) + "=" + quoted(path) + "; " + command;
  std::vector<std::string> shown;
  for (const std::string& word : words) shown.push_back(quoted(word));
  return join(shown, " ");
}

Result<SpecText> record_again(System& system, const std::string& command, const SpecText& recorded,
                              const RecordedBy& by, std::vector<std::string>& said) {
  const std::string name = recorded.file.substr(recorded.file.rfind('/') + 1);
  auto done = system.run_writer(
      name == "-" ? "spec.json" : name, record_variable,
      [&](const std::string& path) { return recording_words(command, by, path); });
  if (!done) return at_place("--record", done.error());
  const std::vector<std::string> lines = lines_of(done->said);
  if (auto failure = failure_of(command, *done, lines)) {
    said = lines;
    return *std::move(failure);
  }
  Diagnostics reported_later(0);
  if (const auto document = read_json(*done->file, {}, reported_later)) {
    const uint32_t incomplete = find_key(*document, 0, "x-incomplete");
    if (incomplete != 0) {
      std::string buffer;
      return bad_input("--record: '" + command + "' did not finish: " +
                       std::string(string_of(*document, document->nodes[incomplete], buffer)));
    }
  }
  return SpecText{recorded.file + " (recorded again)",
                  std::make_shared<const std::string>(*std::move(done->file))};
}

}  // namespace meshplan
