// A temporary file next to the file that it will replace, removed whenever the process ends early.
//
// While it exists, signals that end a process (HUP, INT, QUIT, TERM, XFSZ) remove it first and then
// act as before; ignored signals stay ignored. KILL and power loss cannot be handled.
//
// Not thread-safe; at most one exists at a time.
#pragma once

#include <string>

namespace meshplan {

class TemporaryFile {
 public:
  // Creates it next to `target`; on failure fd() < 0 and errno is set.
  explicit TemporaryFile(const std::string& target);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  [[nodiscard]] int fd() const { return fd_; }
  // Closes it and renames it to the target. On failure returns false and errno is set.
  [[nodiscard]] bool rename_to_target();

 private:
  std::string target_;
  std::string name_;
  int fd_ = -1;
};

}  // namespace meshplan
