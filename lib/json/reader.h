// Checked access to the nodes of a document: every function reports what is wrong with a node at
// its place and then returns no value, so that what depends on it is skipped without a second
// error.
//
// What it is not: part of the library's interface; only spec/read_*.cc use it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "json/document.h"

namespace meshplan {

inline constexpr int64_t int64_max = std::numeric_limits<int64_t>::max();

// A key of an object and whether it may be absent.
struct KeyRule {
  std::string_view name;
  bool required = false;
};

// What a report may carry beyond its message.
struct ReportDetail {
  std::string help;
  std::optional<Fix> fix;
  uint32_t second = 0;  // node of the second place; 0: none
  std::string label;
};

class Reader {
 public:
  Reader(const JsonDocument& document, Diagnostics& diagnostics)
      : document_(document), diagnostics_(diagnostics) {}

  [[nodiscard]] const JsonNode& node(uint32_t index) const { return document_.nodes[index]; }
  [[nodiscard]] const JsonDocument& document() const { return document_; }
  [[nodiscard]] bool readable(uint32_t index) const { return node(index).kind != JsonKind::broken; }
  // Errors reported by this reader so far, whether kept or not.
  [[nodiscard]] size_t errors() const { return errors_; }

  using More = ReportDetail;
  void error(const char* code, uint32_t index, std::string message, More more = {});
  // What -W decides about, once the file is read (Spec::warnings).
  void warning(std::string_view code, uint32_t index, std::string message, More more = {});
  void error_at_key(const char* code, uint32_t index, std::string message, More more = {});
  // With a suggestion for `word`, which is none of the choices. They are asked for only where the
  // error is kept: a file may have many choices and as many wrong words.
  using Choices = std::function<std::vector<std::string>()>;
  void error_naming(const char* code, uint32_t index, std::string message, std::string_view word,
                    const Choices& choices, std::string_view lead);

  // Members of an object in the order of the rules; 0 where absent. Reports missing keys, and
  // unknown ones unless they begin with "x-". No value: not an object.
  template <size_t n>
  std::optional<std::array<uint32_t, n>> members(uint32_t index,
                                                 const std::array<KeyRule, n>& rules,
                                                 std::string_view what) {
    std::array<uint32_t, n> found{};
    if (!find_members(index, rules.data(), n, found.data(), what)) return std::nullopt;
    return found;
  }

  // Elements of a list. No value: not a list.
  std::optional<std::vector<uint32_t>> elements(uint32_t index, std::string_view what);

  // The readers of single values take 0, the place of an absent key, and give no value for it.
  std::optional<int64_t> integer(uint32_t index, std::string_view what, int64_t least,
                                 int64_t most = int64_max);
  // A decimal with at most three places, in thousandths.
  std::optional<int64_t> thousandths(uint32_t index, std::string_view what, int64_t least,
                                     int64_t most);
  std::optional<bool> boolean(uint32_t index, std::string_view what);
  // Valid until the next call where the text has escapes.
  std::optional<std::string_view> text(uint32_t index, std::string_view what);
  // A text that is not empty.
  std::optional<std::string> name(uint32_t index, std::string_view what);
  // Index into `choices`.
  std::optional<size_t> choice(uint32_t index, std::string_view what,
                               const std::vector<std::string>& choices, const char* code = "E0206");

  // Whether the last call of `members` reported an unknown key as a misspelling of this one, which
  // is then not missing.
  [[nodiscard]] bool misspelt(std::string_view key) const;

  void wrong_type(uint32_t index, std::string_view what, const char* expected);

  [[nodiscard]] Place place(uint32_t index) const { return place_of(document_, index); }

 private:
  bool find_members(uint32_t index, const KeyRule* rules, size_t count, uint32_t* found,
                    std::string_view what);
  void unknown_key(uint32_t index, std::string_view key, const KeyRule* rules, size_t count,
                   std::string_view what);
  void add(std::string_view code, Place place, std::string message, More more,
           Severity severity = Severity::error);

  const JsonDocument& document_;
  Diagnostics& diagnostics_;
  std::string buffer_;
  // Of the last object: known keys that unknown ones are taken for, and whether a key is
  // unreadable.
  std::vector<std::string> misspelt_;
  bool keyless_ = false;
  size_t errors_ = 0;
};

// "\"dp\"", made printable.
[[nodiscard]] std::string quote(std::string_view text);
// "; did you mean ...?" as help, or the choices themselves where none is near.
[[nodiscard]] Reader::More suggestion(std::string_view word,
                                      const std::vector<std::string>& choices,
                                      std::string_view lead);

}  // namespace meshplan
