// The interface to the operating system: files, environment, clock and other programs. Commands use
// nothing else, so their tests need no process and no disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text_sink.h"

namespace meshplan {

// The most that is read of one file or of stdin: above any plan (the largest known has 165 MB),
// below what would exhaust a machine.
inline constexpr size_t max_input_bytes = size_t{512} << 20;

enum class Stream : uint8_t { in, out, err };

using Variables = std::vector<std::pair<std::string, std::string>>;

// What a program has done that was to write a file.
struct FileWriting {
  int exit_code = 0;
  int signal = 0;                   // that ended it; 0: none
  std::string said;                 // the end of what it printed
  std::optional<std::string> file;  // what it wrote
};
// The words of a program that is to write the file at a path.
using WriterCommand = std::function<std::vector<std::string>(const std::string& path)>;

class System {
 public:
  virtual ~System() = default;
  // Errors name the path and what the system said, or that it holds more than max_input_bytes.
  [[nodiscard]] virtual Result<std::string> read_file(const std::string& path) = 0;
  // Writes atomically: the file is unchanged or contains all of `text`. Links are followed, also
  // dangling ones; devices are written directly.
  [[nodiscard]] virtual Status write_file(const std::string& path, const std::string& text) = 0;
  // The same for a text that comes in parts, of which none is kept; where `write` fails, the file
  // stays as it was and the error is that of `write`.
  [[nodiscard]] virtual Status write_parts(const std::string& path, const TextWriter& write) = 0;
  // The error of writing to this path, as far as it can be told before.
  [[nodiscard]] virtual Status may_write(const std::string& path) = 0;
  // Whether both paths lead to one regular file.
  [[nodiscard]] virtual bool same_file(const std::string& a, const std::string& b) = 0;
  [[nodiscard]] virtual bool is_folder(const std::string& path) = 0;
  // Whether the path leads to a pipe, socket or device: what reading may wait for without end.
  [[nodiscard]] virtual bool may_wait(const std::string& path) = 0;
  // Files below the folder whose names end in ".json", with their paths, ascending; hidden ones
  // left out.
  [[nodiscard]] virtual Result<std::vector<std::string>> list_json(const std::string& folder) = 0;
  // What a program prints on stdout; no shell. The error holds what it printed on stderr.
  [[nodiscard]] virtual Result<std::string> run_program(
      const std::vector<std::string>& command) = 0;

  // Runs a program on the streams of this one, with these variables where the environment has none
  // of that name; its exit code, 128 + the signal that ended it, or why it cannot be started.
  [[nodiscard]] virtual Result<int> run_attached(const std::vector<std::string>& command,
                                                 const Variables& defaults) = 0;
  // Runs a program that writes a file called `name` into a folder that is gone afterwards; the
  // file's path is in the environment as `variable`. It has no stdin; the end of what it prints is
  // kept. Signals that would end this process go to the program and what it started instead.
  // Error: it cannot be started, or its folder not be made.
  [[nodiscard]] virtual Result<FileWriting> run_writer(const std::string& name,
                                                       const std::string& variable,
                                                       const WriterCommand& command) = 0;
  // Starts so many processes of a program, one a rank, and waits for all (replay_host/launch.h);
  // what went wrong is added to `messages`.
  [[nodiscard]] virtual Result<int> launch(const std::vector<std::string>& command, int64_t ranks,
                                           std::string& messages) = 0;
  // The path of the program that runs.
  [[nodiscard]] virtual std::string own_path() = 0;

  [[nodiscard]] virtual std::optional<std::string> variable(const std::string& name) = 0;
  [[nodiscard]] virtual bool is_terminal(Stream stream) = 0;
  [[nodiscard]] virtual int64_t terminal_columns() = 0;  // 0: not known
  [[nodiscard]] virtual int64_t now_ms() = 0;            // from any start, never back
};

}  // namespace meshplan
