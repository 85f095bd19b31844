// A file that is written beside the one it will replace, and that no end of the process leaves behind.
//
// From its making to its end the signals that end a process (HUP, INT, QUIT, TERM, XFSZ) remove it first and then do what they did before;
// one that is ignored stays ignored. KILL and a loss of power cannot be caught.
//
// What it is not: for several threads; at most one exists at a time.
#pragma once

#include <string>

namespace meshplan {

class TemporaryFile {
 public:
  // Makes it beside `target`; fd() < 0: it cannot be made, and errno says why.
  explicit TemporaryFile(const std::string& target);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  [[nodiscard]] int fd() const { return fd_; }
  // Closes it and gives it the name of the target, which it replaces. False: errno says why.
  [[nodiscard]] bool rename_to_target();

 private:
  std::string target_;
  std::string name_;
  int fd_ = -1;
};

}  // namespace meshplan
