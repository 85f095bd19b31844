#include "diag/render.h"

#include <algorithm>
#include <set>

#include "base/enum_names.h"
#include "base/text.h"
#include "base/utf8.h"
#include "diag/codes.h"

namespace meshplan {
namespace {

struct Paint {
  bool on;
  [[nodiscard]] std::string operator()(const char* sequence, const std::string& text) const {
    return on ? std::string("\x1b[") + sequence + "m" + text + "\x1b[0m" : text;
  }
};

const char* severity_color(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "1;31";
    case Severity::warning:
      return "1;33";
    case Severity::note:
      return "1;36";
  }
  return "0";
}

std::string place_text(const Place& place) {
  std::string text = printable(place.file, 400);
  if (place.line > 0) text += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  if (!place.pointer.empty()) text += " (" + printable(place.pointer, 200) + ")";
  return text;
}

// The source line with its number, and the carets below it. `margin`: width of the number column.
std::string snippet(const Place& place, size_t margin, char mark, const std::string& label,
                    const char* color, const Paint& paint) {
  const std::string number = std::to_string(place.line);
  const std::string bar = paint("1;34", "|");
  std::string text = std::string(margin - number.size(), ' ') + paint("1;34", number) + " " + bar +
                     " " + place.excerpt + "\n";
  text += std::string(margin, ' ') + " " + bar + " " +
          std::string(static_cast<size_t>(place.caret), ' ') +
          paint(color, std::string(static_cast<size_t>(place.caret_width), mark) +
                           (label.empty() ? "" : " " + one_line(label))) +
          "\n";
  return text;
}

size_t digits(int64_t line) { return std::to_string(line).size(); }

std::string text_of(const Diagnostics& diagnostics, bool color) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.sorted())
    text += render_text(diagnostic, color) + "\n";
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note}) {
    if (const size_t left_out = diagnostics.left_out(severity)) {
      text += "and " + std::to_string(left_out) + " more " + to_text(severity) +
              (left_out == 1 ? "" : "s") + "\n";
    }
  }
  const size_t errors = diagnostics.count(Severity::error);
  const size_t warnings = diagnostics.count(Severity::warning);
  if (errors + warnings > 1) {
    text += (errors > 0 ? counted(static_cast<int64_t>(errors), "error") : "") +
            (errors > 0 && warnings > 0 ? ", " : "") +
            (warnings > 0 ? counted(static_cast<int64_t>(warnings), "warning") : "") + "\n";
  }
  return text;
}

std::string json_place(const Place& place) {
  std::string text = "{\"file\": " + json_string(place.file);
  if (place.line > 0) {
    text += ", \"line\": " + std::to_string(place.line) +
            ", \"column\": " + std::to_string(place.column) +
            ", \"end_line\": " + std::to_string(place.end_line) +
            ", \"end_column\": " + std::to_string(place.end_column) +
            ", \"begin\": " + std::to_string(place.begin) +
            ", \"end\": " + std::to_string(place.end);
  }
  return text + ", \"pointer\": " + json_string(place.pointer) + "}";
}

std::string json_of(const Diagnostics& diagnostics) {
  std::string text = "{\"diagnostics\": [";
  const char* separator = "\n";
  for (const Diagnostic& diagnostic : diagnostics.sorted()) {
    text += separator;
    separator = ",\n";
    text += "  {\"code\": " + json_string(diagnostic.code) +
            ", \"severity\": " + json_string(to_text(diagnostic.severity)) +
            ", \"message\": " + json_string(diagnostic.message) +
            ", \"place\": " + json_place(diagnostic.place);
    if (diagnostic.second) {
      text += ", \"second\": {\"label\": " + json_string(diagnostic.second->label) +
              ", \"place\": " + json_place(diagnostic.second->place) + "}";
    }
    if (!diagnostic.help.empty()) text += ", \"help\": " + json_string(diagnostic.help);
    if (diagnostic.fix) {
      text += ", \"fix\": {\"text\": " + json_string(diagnostic.fix->text) +
              ", \"applicable\": " + (diagnostic.fix->applicable ? "true" : "false") + "}";
    }
    text += "}";
  }
  size_t left_out = 0;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note})
    left_out += diagnostics.left_out(severity);
  return text + (diagnostics.kept().empty() ? "" : "\n") +
         "], \"errors\": " + std::to_string(diagnostics.count(Severity::error)) +
         ", \"warnings\": " + std::to_string(diagnostics.count(Severity::warning)) +
         ", \"left_out\": " + std::to_string(left_out) + "}\n";
}

// Escapes as in https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
// Other control characters are made printable.
std::string github_data(std::string_view text, bool property) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\r' || text[at] == '\n') {
      out += text[at] == '\r' ? "%0D" : "%0A";
      ++at;
      continue;
    }
    const size_t end = std::min(text.find_first_of("\r\n", at), text.size());
    for (const char c : one_line(text.substr(at, end - at))) {
      if (c == '%') {
        out += "%25";
      } else if (property && c == ':') {
        out += "%3A";
      } else if (property && c == ',') {
        out += "%2C";
      } else {
        out += c;
      }
    }
    at = end;
  }
  return out;
}

// Nothing where there is no file, as of a problem of the command line.
std::string github_place(const Place& place) {
  if (place.file.empty()) return "";
  std::string text = "file=" + github_data(place.file, true) + ",";
  if (place.line > 0) {
    text += "line=" + std::to_string(place.line) + ",col=" + std::to_string(place.column) +
            ",endLine=" + std::to_string(place.end_line) +
            ",endColumn=" + std::to_string(place.end_column) + ",";
  }
  return text;
}

constexpr size_t annotations_a_kind = 10;  // limit of GitHub per kind and step

std::string github_of(const Diagnostics& diagnostics) {
  std::string text;
  std::string more;
  const std::vector<Diagnostic> sorted = diagnostics.sorted();
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note}) {
    std::vector<const Diagnostic*> ranked;
    for (const Diagnostic& diagnostic : sorted) {
      if (diagnostic.severity == severity) ranked.push_back(&diagnostic);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const Diagnostic* a, const Diagnostic* b) {
      return a->weight > b->weight;
    });
    // One notice is reserved for the line with the number of omitted ones.
    const size_t shown =
        std::min(ranked.size(), annotations_a_kind - (severity == Severity::note ? 1 : 0));
    for (size_t i = 0; i < shown; ++i) {
      const Diagnostic& diagnostic = *ranked[i];
      text += std::string("::") + (severity == Severity::note ? "notice" : to_text(severity)) +
              " " + github_place(diagnostic.place) + "title=" + github_data(diagnostic.code, true) +
              "::" + github_data(diagnostic.message, false);
      if (!diagnostic.help.empty()) text += "%0A" + github_data("help: " + diagnostic.help, false);
      text += "\n";
    }
    if (const size_t left = diagnostics.count(severity) - shown) {
      more += (more.empty() ? "" : ", ") + std::to_string(left) + " more " + to_text(severity) +
              (left == 1 ? "" : "s");
    }
  }
  if (!more.empty()) text += "::notice title=meshplan::" + more + "\n";
  return text;
}

std::string sarif_region(const Place& place) {
  if (place.line == 0) return "";
  return ", \"region\": {\"startLine\": " + std::to_string(place.line) +
         ", \"startColumn\": " + std::to_string(place.column) +
         ", \"endLine\": " + std::to_string(place.end_line) +
         ", \"endColumn\": " + std::to_string(place.end_column) +
         ", \"byteOffset\": " + std::to_string(place.begin) +
         ", \"byteLength\": " + std::to_string(place.end - place.begin) + "}";
}

// A relative URI reference: all but unreserved characters and "/" are percent-encoded.
std::string sarif_uri(std::string_view file) {
  constexpr const char* hex = "0123456789ABCDEF";
  std::string out;
  for (const char c : file) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || c == '/';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += hex[byte >> 4];
      out += hex[byte & 15];
    }
  }
  return out;
}

std::string sarif_location(const Place& place, const std::string& label) {
  std::string text = "{\"physicalLocation\": {\"artifactLocation\": {\"uri\": " +
                     json_string(sarif_uri(place.file)) + "}" + sarif_region(place) + "}";
  if (!place.pointer.empty())
    text +=
        ", \"logicalLocations\": [{\"fullyQualifiedName\": " + json_string(place.pointer) + "}]";
  if (!label.empty()) text += ", \"message\": {\"text\": " + json_string(label) + "}";
  return text + "}";
}

std::string sarif_of(const Diagnostics& diagnostics, const std::string& version) {
  const std::vector<Diagnostic> sorted = diagnostics.sorted();
  std::set<std::string> codes;
  for (const Diagnostic& diagnostic : sorted) codes.insert(diagnostic.code);
  std::string text =
      "{\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\", \"version\": \"2.1.0\", \"runs\": [{\n"
      "  \"tool\": {\"driver\": {\"name\": \"meshplan\"";
  if (!version.empty()) text += ", \"version\": " + json_string(version);
  text += ", \"rules\": [";
  const char* separator = "\n";
  for (const std::string& code : codes) {
    const CodeEntry* entry = find_code(code);
    text += std::string(separator) + "    {\"id\": " + json_string(code);
    if (entry != nullptr) {
      text += ", \"name\": " + json_string(entry->name) +
              ", \"shortDescription\": {\"text\": " + json_string(entry->title) +
              "}, \"fullDescription\": {\"text\": " + json_string(entry->explanation) + "}";
    }
    text += "}";
    separator = ",\n";
  }
  text += std::string(codes.empty() ? "" : "\n  ") +
          "]}},\n  \"columnKind\": \"unicodeCodePoints\",\n  \"results\": [";
  separator = "\n";
  for (const Diagnostic& diagnostic : sorted) {
    text += std::string(separator) + "    {\"ruleId\": " + json_string(diagnostic.code) +
            ", \"level\": " + json_string(to_text(diagnostic.severity)) +
            ", \"message\": {\"text\": " +
            json_string(diagnostic.message +
                        (diagnostic.help.empty() ? "" : "\nhelp: " + diagnostic.help)) +
            "}";
    if (!diagnostic.place.file.empty())
      text += ", \"locations\": [" + sarif_location(diagnostic.place, "") + "]";
    if (diagnostic.second)
      text += ", \"relatedLocations\": [" +
              sarif_location(diagnostic.second->place, diagnostic.second->label) + "]";
    text += "}";
    separator = ",\n";
  }
  return text + (sorted.empty() ? "" : "\n  ") + "]\n}]}\n";
}

}  // namespace

std::optional<DiagnosticFormat> parse_diagnostic_format(std::string_view text) {
  static constexpr EnumNames<DiagnosticFormat, 4> names{{"text", "json", "github", "sarif"}};
  return names.parse(text);
}

std::string render_text(const Diagnostic& diagnostic, bool color) {
  const Paint paint{color};
  const char* own = severity_color(diagnostic.severity);
  std::string text =
      paint(own, std::string(to_text(diagnostic.severity)) + "[" + diagnostic.code + "]") +
      paint("1", ": " + one_line(diagnostic.message)) + "\n";
  const Place& place = diagnostic.place;
  size_t margin = digits(place.line);
  const bool second_lines = diagnostic.second && diagnostic.second->place.line > 0;
  if (second_lines) margin = std::max(margin, digits(diagnostic.second->place.line));
  if (!place.file.empty())
    text += std::string(margin, ' ') + paint("1;34", "-->") + " " + place_text(place) + "\n";
  // Two places of one file are shown in the order of their lines.
  const bool second_first = second_lines && place.line > 0 &&
                            diagnostic.second->place.file == place.file &&
                            diagnostic.second->place.begin < place.begin;
  const auto second_text = [&] {
    std::string shown;
    if (diagnostic.second->place.file != place.file)
      shown += std::string(margin, ' ') + paint("1;34", "-->") + " " +
               place_text(diagnostic.second->place) + "\n";
    return shown +
           snippet(diagnostic.second->place, margin, '-', diagnostic.second->label, "1;34", paint);
  };
  if (second_first) text += second_text();
  if (place.line > 0) text += snippet(place, margin, '^', "", own, paint);
  if (second_lines && !second_first) text += second_text();
  if (!diagnostic.help.empty())
    text += std::string(margin, ' ') + " " + paint("1;34", "=") + " " + paint("1", "help") + ": " +
            one_line(diagnostic.help) + "\n";
  return text;
}

std::string render(const Diagnostics& diagnostics, const DiagnosticRendering& rendering) {
  switch (rendering.format) {
    case DiagnosticFormat::text:
      return text_of(diagnostics, rendering.color);
    case DiagnosticFormat::json:
      return json_of(diagnostics);
    case DiagnosticFormat::github:
      return github_of(diagnostics);
    case DiagnosticFormat::sarif:
      return sarif_of(diagnostics, rendering.tool_version);
  }
  return "";
}

}  // namespace meshplan
