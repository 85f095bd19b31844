#include "plan/notes.h"

#include <algorithm>

#include "base/utf8.h"
#include "json/parse.h"
#include "json/value.h"

namespace meshplan {
namespace {

// None: no such note. The document refers to the note's text.
std::optional<JsonDocument> document_of(const Request& request, std::string_view key) {
  const auto note = std::find_if(request.notes.begin(), request.notes.end(),
                                 [&](const Note& each) { return each.key == key; });
  if (note == request.notes.end()) return std::nullopt;
  auto parsed = parse_json(note->json, {});
  auto* document = std::get_if<JsonDocument>(&parsed);
  return document == nullptr ? std::nullopt : std::optional(std::move(*document));
}

}  // namespace

bool is_carried_note(std::string_view key) {
  return key == "x-module" || key == "x-partial" || key == "x-source";
}

std::string note_text(const Request& request, std::string_view key) {
  const auto document = document_of(request, key);
  if (!document) return {};
  const Value value(*document, 0);
  return value.is_text() ? value.text() : std::string();
}

std::string where_text(const Request& request) {
  const std::string module = note_text(request, "x-module");
  const std::string source = note_text(request, "x-source");
  return one_line(module + (module.empty() || source.empty() ? "" : ", ") + source);
}

std::vector<std::string> partial_names(const Request& request) {
  const auto document = document_of(request, "x-partial");
  std::vector<std::string> names;
  if (!document) return names;
  const Value value(*document, 0);
  if (value.kind() != JsonKind::array) return names;
  value.each([&](const Value& name) {
    names.push_back(name.is_text() ? one_line(name.text()) : std::string());
  });
  return names;
}

}  // namespace meshplan
