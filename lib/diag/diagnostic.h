// Diagnostics: problems of an input, with their places.
//
//     error[E0203]: unknown key "sorce"             code and message
//       --> spec.json:7:5 (/redistributions/0)      place: line, column, JSON pointer
//      7 |     "sorce": ["R"]                       the line as written, with a caret
//        |     ^^^^^^^
//       help: did you mean "src"?                   help, and a fix if one is known
//
// A reader adds diagnostics to a collector and continues; the command line renders them all
// (diag/render.h). Codes are listed in diag/codes.h.
//
// The collector only counts, limits and sorts; whether to continue reading is the decision of the
// reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshplan {

enum class Severity : uint8_t { error, warning, note };
[[nodiscard]] const char* to_text(Severity severity);  // "error"

// A range of an input file. Line 0: the whole file. Columns count Unicode characters from 1, bytes
// count from 0.
struct Place {
  std::string file;  // as given on the command line; "-" is stdin
  int64_t line = 0;
  int64_t column = 0;
  int64_t end_line = 0;
  int64_t end_column = 0;  // exclusive
  int64_t begin = 0;       // byte offsets [begin, end)
  int64_t end = 0;
  std::string pointer;  // JSON pointer of the value concerned; "" is the whole document
  // The first line of the range as written, shortened around the range if it is long, and the
  // position of the carets in it (in characters, from 0).
  std::string excerpt;
  int64_t caret = 0;
  int64_t caret_width = 1;
  bool operator==(const Place&) const = default;
};

// How far a text is known to lead from its start to a place: those further on are found from there.
struct LastPlace {
  size_t line_begin = 0;
  int64_t line = 1;
  size_t at = 0;           // on that line, where a character begins
  int64_t characters = 0;  // from line_begin up to there
};

// The place of bytes [begin, end) of `text`. Invalid UTF-8 bytes count as one character each.
// O(end); from `last` on where that lies before it, and `last` moves there: many places that ascend
// take one pass. Law: the same place with `last` or without.
[[nodiscard]] Place locate(std::string_view text, std::string file, size_t begin, size_t end,
                           std::string pointer = {}, LastPlace* last = nullptr);
// The place of a whole file.
[[nodiscard]] Place whole_file(std::string file);

// A second place that the message refers to, such as the first definition of a duplicated name.
struct SecondPlace {
  Place place;
  std::string label;  // "first given here"
  bool operator==(const SecondPlace&) const = default;
};

// Replacement for the text at the place of the diagnostic. `applicable`: a tool may apply it
// without asking; otherwise it is a guess.
struct Fix {
  std::string text;
  bool applicable = false;
  bool operator==(const Fix&) const = default;
};

struct Diagnostic {
  std::string code;  // "E0203"; numbered by phase, never reused
  Severity severity = Severity::error;
  Place place;
  std::string message;  // one line, lower-case, no final period
  std::optional<SecondPlace> second;
  std::string help;  // one line; empty: none
  std::optional<Fix> fix;
  int64_t weight = 0;  // rank: if only some can be shown, larger weights are shown first
  bool operator==(const Diagnostic&) const = default;
};

// Collects diagnostics.
//   - An error (E....) at a range of the input that already has an error is dropped as a
//     consequence of the first. Warnings promoted to errors by a flag are kept.
//   - At most `cap` diagnostics of each severity are kept; the others are only counted.
//   - sorted() is stable: by file, position, code, then the order in which they were added.
class Diagnostics {
 public:
  static constexpr size_t default_cap = 100;
  explicit Diagnostics(size_t cap = default_cap) : cap_(cap) {}

  void add(Diagnostic diagnostic);
  // Adds all diagnostics of another collector.
  void add_all(const Diagnostics& others);
  // Counts a diagnostic without storing it. If `full(severity)`, a reader can skip computing place
  // and message.
  void count_only(Severity severity);
  // Takes out the warnings that are kept, in the order they were added.
  [[nodiscard]] std::vector<Diagnostic> take_warnings();

  [[nodiscard]] size_t cap() const { return cap_; }
  [[nodiscard]] bool full(Severity severity) const { return kept_[index(severity)] >= cap_; }
  [[nodiscard]] bool has_errors() const { return count(Severity::error) > 0; }
  [[nodiscard]] bool empty() const {
    return kept_[0] + kept_[1] + kept_[2] + left_out_[0] + left_out_[1] + left_out_[2] == 0;
  }
  // Total number, kept or only counted.
  [[nodiscard]] size_t count(Severity severity) const {
    return kept_[index(severity)] + left_out_[index(severity)];
  }
  [[nodiscard]] size_t left_out(Severity severity) const { return left_out_[index(severity)]; }
  // In the order they were added.
  [[nodiscard]] const std::vector<Diagnostic>& kept() const { return diagnostics_; }
  [[nodiscard]] std::vector<Diagnostic> sorted() const;

 private:
  static size_t index(Severity severity) { return static_cast<size_t>(severity); }
  std::vector<Diagnostic> diagnostics_;
  size_t cap_;
  size_t kept_[3] = {0, 0, 0};
  size_t left_out_[3] = {0, 0, 0};
};

}  // namespace meshplan
