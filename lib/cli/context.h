// The context of a command: system, streams, and output settings.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/warnings.h"
#include "cli/system.h"
#include "diag/diagnostic.h"
#include "diag/render.h"

namespace meshplan {

enum class ColorChoice : uint8_t { automatic, always, never };

struct CommonFlags {
  ColorChoice color = ColorChoice::automatic;
  bool quiet = false;
  bool verbose = false;
  DiagnosticFormat diagnostics = DiagnosticFormat::text;
  WarningPolicy warnings;
};

class Context {
 public:
  Context(System& outside, std::istream& input, std::ostream& output, std::ostream& messages)
      : system(outside), in(input), out(output), err(messages) {}

  System& system;
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  CommonFlags flags;
  Diagnostics diagnostics;  // rendered once, when the command ends
  // Flags of files that the command is to write, and the files.
  std::vector<std::pair<std::string, std::string>> outputs;

  // The text of a file, or of stdin for "-".
  [[nodiscard]] Result<std::string> read_input(const std::string& path);
  // The same, which is there to be read again.
  [[nodiscard]] Result<std::string> peek_input(const std::string& path);
  // The other one reads what this one has seen of stdin.
  void hand_over(Context& other) { other.peeked_ = std::exchange(peeked_, std::nullopt); }
  // The same; where it cannot be read, that is reported and `code` is the exit code.
  [[nodiscard]] std::optional<std::string> read_input(const std::string& path, int& code);
  // Data: to the file, or to stdout for "" and "-".
  [[nodiscard]] Status write_output(const std::string& path, const std::string& text);
  // The same for a text that comes in parts, of which none is kept.
  [[nodiscard]] Status write_parts(const std::string& path, const TextWriter& write);
  // The last output of a command; returns the exit code, 0 where it was written.
  [[nodiscard]] int finish(const std::string& path, const std::string& text);
  // A message for the user on stderr; --quiet drops it.
  void say(std::string_view message);
  // The same, said only with --verbose.
  void explain(std::string_view message);

  // An error that concerns a file as a whole, or none (""); returns its exit code.
  int fail(const std::string& file, const Error& error);
  int fail(const std::string& file, const Error& error, std::string_view code);
  int fail_at(Place place, const Error& error);
  int fail_at(Place place, const Error& error, std::string_view code);

  [[nodiscard]] bool color(Stream stream);
  // Columns that a table may use; 0: as wide as it is.
  [[nodiscard]] int64_t columns();
  // Whether the locale says UTF-8; else pictures and tables are plain ASCII.
  [[nodiscard]] bool unicode();

 private:
  std::optional<std::string> peeked_;  // of stdin
};

// A line on a terminal that says how far a long run is; it appears after a second and is taken away
// at the end.
class Progress {
 public:
  explicit Progress(Context& context) : context_(context), start_ms_(context.system.now_ms()) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }
  void update(size_t done, size_t all, std::string_view what);
  void clear();

 private:
  Context& context_;
  int64_t start_ms_;
  int64_t shown_ms_ = 0;
  bool shown_ = false;
};

}  // namespace meshplan
