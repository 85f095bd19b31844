// A value of a file that a program wrote, and the way to it: every value is checked for type and
// range before it is used, and the first problem ends the reading with its JSON pointer.
//
//     root.at("mesh").at("world").integer(1)
//         throws Unreadable{"0 is out of range: expected 1 or more", "/mesh/world", ...}
//
// What it is not: for files that people write, whose problems are listed (json/reader.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/document.h"

namespace meshplan {

// Ends the reading of a file; caught where it began.
struct Unreadable {
  std::string message;
  std::string pointer;  // of the value concerned; "" is the whole document
  size_t begin = 0;     // its bytes
  size_t end = 0;
};

// Lives only as long as its document.
class Value {
 public:
  Value(const JsonDocument& document, uint32_t node) : document_(&document), node_(node) {}

  [[noreturn]] void fail(std::string message) const;

  [[nodiscard]] std::string pointer() const { return pointer_to(*document_, node_); }
  [[nodiscard]] JsonKind kind() const { return node().kind; }
  [[nodiscard]] bool is_null() const { return kind() == JsonKind::null; }
  [[nodiscard]] bool is_text() const { return kind() == JsonKind::string; }
  [[nodiscard]] int64_t count() const { return node().count; }
  // Of a list that is not empty.
  [[nodiscard]] Value first() const { return {*document_, node_ + 1}; }
  [[nodiscard]] std::string_view as_written() const { return raw(*document_, node()); }

  [[nodiscard]] bool has(std::string_view key) const { return find(key).has_value(); }
  // None: no such member, or no object.
  [[nodiscard]] std::optional<Value> find(std::string_view key) const;
  [[nodiscard]] Value at(std::string_view key) const;

  [[nodiscard]] int64_t integer(int64_t least, int64_t most = INT64_MAX) const;
  // None: no integer of 64 bits.
  [[nodiscard]] std::optional<int64_t> whole() const { return integer_of(*document_, node()); }
  // None: no number.
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string canonical() const;

  // Calls `read` with each element.
  template <class Read>
  void each(const Read& read) const {
    if (kind() != JsonKind::array) fail("expected a list");
    const uint32_t end = node().next;
    for (uint32_t child = node_ + 1; child < end; child = document_->nodes[child].next) {
      read(Value(*document_, child));
    }
  }
  // Calls `read` with the key and the value of each member.
  template <class Read>
  void each_member(const Read& read) const {
    if (kind() != JsonKind::object) fail("expected an object");
    std::string buffer;
    const uint32_t end = node().next;
    for (uint32_t child = node_ + 1; child < end; child = document_->nodes[child].next) {
      const JsonNode& member = document_->nodes[child];
      read(key_of(*document_, member, buffer), Value(*document_, child));
    }
  }
  [[nodiscard]] std::vector<std::string> texts() const;
  [[nodiscard]] std::vector<int64_t> integers(int64_t least) const;

  // What a parser of the text form gives, its error placed here.
  template <class Parsed>
  [[nodiscard]] Parsed must(Result<Parsed> result) const {
    if (!result) fail(result.error().message);
    return std::move(result).value();
  }
  template <class Parsed>
  [[nodiscard]] Parsed must(std::optional<Parsed> result, const char* what) const {
    if (!result) fail(std::string("unknown ") + what + " \"" + text() + "\"");
    return *result;
  }

 private:
  [[nodiscard]] const JsonNode& node() const { return document_->nodes[node_]; }

  const JsonDocument* document_;
  uint32_t node_;
};

}  // namespace meshplan
