#include "diag/codes.h"

#include <algorithm>

#include "base/utf8.h"
#include "diag/code_parts.h"

namespace meshplan {
namespace {

// Indents every line; bytes that are not UTF-8 are shown like <E9>.
std::string indented(const std::string& text) {
  std::string out = "    ";
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) {
      constexpr const char* hex = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(text[at++]);
      out += std::string("<") + hex[byte >> 4] + hex[byte & 15] + ">";
      continue;
    }
    out += text.substr(at, length);
    if (text[at] == '\n') out += "    ";
    at += length;
  }
  return out;
}

// Breaks text into lines of at most 100 characters.
std::string wrapped(const std::string& text) {
  constexpr size_t width = 100;
  std::string out;
  size_t column = 0;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (column > 0 && column + 1 + (end - at) > width) {
      out += '\n';
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string spec_of(const std::string& members) {
  return "{\n  \"schema\": \"meshplan/spec/1\",\n  " + members + "\n}";
}

std::string redistribution_of(const std::string& members) {
  return spec_of(
      "\"mesh\": {\"dims\": [{\"name\": \"dp\", \"size\": 2}, {\"name\": \"tp\", \"size\": 4}]},\n"
      "  \"redistributions\": [{\"id\": \"wq.grad\",\n    " +
      members + "}]");
}

const std::vector<CodeEntry>& code_table() {
  static const std::vector<CodeEntry> table = [] {
    std::vector<CodeEntry> all;
    for (auto part :
         {text_codes, form_codes, mesh_codes, redistribution_codes, command_codes, advice_codes}) {
      for (CodeEntry& entry : part()) all.push_back(std::move(entry));
    }
    std::sort(all.begin(), all.end(),
              [](const CodeEntry& a, const CodeEntry& b) { return a.code < b.code; });
    return all;
  }();
  return table;
}

const CodeEntry* find_code(std::string_view code) {
  const std::vector<CodeEntry>& table = code_table();
  const auto found = std::lower_bound(
      table.begin(), table.end(), code,
      [](const CodeEntry& entry, std::string_view wanted) { return entry.code < wanted; });
  return found != table.end() && found->code == code ? &*found : nullptr;
}

bool may_be_silenced(std::string_view code) {
  return code.starts_with("W03") && find_code(code) != nullptr;
}

std::string warning_kind(std::string_view code) {
  const CodeEntry* entry = find_code(code);
  std::string kind = entry != nullptr ? entry->name : "";
  std::replace(kind.begin(), kind.end(), '_', '-');
  return kind;
}

std::vector<std::string> warning_kinds() {
  std::vector<std::string> kinds;
  for (const CodeEntry& entry : code_table()) {
    if (may_be_silenced(entry.code)) kinds.push_back(warning_kind(entry.code));
  }
  return kinds;
}

std::optional<std::string> explain_code(std::string_view code) {
  std::string upper(code);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  const CodeEntry* entry = find_code(upper);
  if (entry == nullptr) return std::nullopt;
  std::string text = entry->code + " (" + entry->name + "): " + entry->title + "\n\n" +
                     wrapped(entry->explanation) + "\n";
  const std::string with = entry->command.empty() ? "" : ", with " + entry->command;
  if (!entry->failing.empty())
    text += "\nExample" + with + ":\n\n" + indented(entry->failing) + "\n";
  if (!entry->fixed.empty()) text += "\nFixed:\n\n" + indented(entry->fixed) + "\n";
  return text;
}

}  // namespace meshplan
