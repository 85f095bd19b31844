// Writes JSON: every text that the project writes goes through here.
//
//     JsonWriter w(2, Breaks::one_line);
//     w.open('{', Breaks::lines);                          {
//     w.field("count", 3);                                   "count": 3,
//     w.list("dims", Breaks::lines, dims, [&](auto& dim) {   "dims": [
//       w.object({{"name", dim.name}, {"size", 4}});           {"name": "dp", "size": 4}
//     });                                                    ]
//     w.close();                                           }
//
// Canonical texts (plans, diffs, reports) have ascending keys, which is the caller's part; what a
// string or a number looks like is decided here.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/document.h"

namespace meshplan {

// Where the members of a container go: each on a line of its own, all on one line, or without any
// blank, which holds for everything in it.
enum class Breaks : uint8_t { lines, one_line, compact };

// The shortest decimal that reads back as the same double, as Python writes it: 12.5, 3.0, 0.0001,
// 1e-05, 1e+16; always with a point or an exponent. What is not finite is null.
void append_json_number(std::string& out, double value);

// The compact canonical JSON of a subtree: keys ascending by their bytes, no blanks, only the
// escapes that JSON demands, integers without a sign of zero, other numbers by append_json_number.
// What digests are over. The keys of every object must be distinct.
// Law: the canonical text of a canonical text is itself.
void append_canonical(std::string& out, const JsonDocument& document, uint32_t node);
[[nodiscard]] std::string canonical_text(const JsonDocument& document, uint32_t node = 0);

// A number, a text, true or false, null (std::nullopt), a list of numbers or of texts; lives only
// as long as what it was made from.
class JsonItem {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  JsonItem(std::nullopt_t) {}
  JsonItem(const char* text) : value_(std::string_view(text)) {}
  JsonItem(std::string_view text) : value_(text) {}
  JsonItem(const std::string& text) : value_(std::string_view(text)) {}
  JsonItem(const std::vector<int64_t>& list) : value_(&list) {}
  JsonItem(const std::vector<std::string>& list) : value_(&list) {}
  JsonItem(std::same_as<bool> auto flag) : value_(flag) {}
  JsonItem(std::signed_integral auto number) : value_(int64_t{number}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) JsonItem(T number) : value_(uint64_t{number}) {}
  JsonItem(double number) : value_(number) {}
  template <class T>
  JsonItem(const std::optional<T>& given) {
    if (given) *this = JsonItem(*given);
  }
  // NOLINTEND(google-explicit-constructor)

 private:
  friend class JsonWriter;
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string_view,
               const std::vector<int64_t>*, const std::vector<std::string>*>
      value_;
};

struct JsonField {
  std::string_view key;
  JsonItem value;
};

class JsonWriter {
 public:
  // `indent`: blanks before a line for every container around it. `usual`: the breaks of a
  // container that is opened without any.
  explicit JsonWriter(size_t indent, Breaks usual = Breaks::lines)
      : indent_(indent), usual_(usual) {}

  void open(char bracket) { open(bracket, usual_); }
  void open(char bracket, Breaks breaks);
  void close();
  void key(std::string_view name);
  // An element of a list, the value of the key before it, or the whole text.
  void value(const JsonItem& item);
  // A number that is written already.
  void number(std::string_view digits);
  // Any value that is written already, compact.
  void written(std::string_view json) { number(json); }

  void field(std::string_view name, const JsonItem& item);
  void fields(std::initializer_list<JsonField> all);
  void object(std::initializer_list<JsonField> all);
  // A list, each element written by `write`.
  template <class List, class Write>
  void list(std::string_view name, Breaks breaks, const List& elements, const Write& write) {
    key(name);
    open('[', breaks);
    for (const auto& element : elements) write(element);
    close();
  }
  template <class List, class Write>
  void list(std::string_view name, const List& elements, const Write& write) {
    list(name, usual_, elements, write);
  }

  void reserve(size_t bytes) { text_.reserve(bytes); }
  // Every container is closed. `end` follows the text.
  [[nodiscard]] std::string take(std::string_view end = "\n");

 private:
  struct Level {
    char closer;
    Breaks breaks;
    bool empty;
  };
  void begin_value();
  void separate();

  size_t indent_;
  Breaks usual_;
  std::vector<Level> open_;
  bool after_key_ = false;
  std::string text_;
};

}  // namespace meshplan
