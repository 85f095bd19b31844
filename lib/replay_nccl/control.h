// What the processes of a run say to each other beside NCCL: a star of TCP connections to process 0.
//
// NCCL neither says which rank is missing nor ends a collective that one rank never joins. Here a process that ends closes its connection,
// and one that hangs stays silent past the deadline: either way the others learn who it was. Texts travel here too, so that comparing notes
// needs no GPU memory.
//
// Process 0 listens where the others call it: on loopback alone for the processes of one machine. Of a caller it reads the 25 bytes that
// prove it to be one of the run's processes, and no more before they do; who says something else, or nothing for a while, is cut off.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace meshplan {

class Control {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  struct Question {
    int64_t process = 0;
    int64_t processes = 1;
    std::string host;                               // where process 0 runs, as the others reach it
    std::function<std::string(int64_t)> rank_text;  // how messages call a process: "rank 3"
    Deadline deadline;
    std::chrono::milliseconds introduction{10'000};  // how long a caller may take to say who it is
    // Gives process 0's 16 bytes to everyone: where it listens and a word that strangers do not know. Called once by every process.
    std::function<Result<std::string>(const std::string&)> share;
  };
  // Collective. Errors (environment): process 0 cannot be reached, somebody did not come.
  [[nodiscard]] static Result<std::unique_ptr<Control>> open(const Question& question);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // What every process says, in process order. Errors name who has ended, who did not come within the deadline, or pass on what another
  // process has reported.
  [[nodiscard]] Result<std::vector<std::string>> gather(const std::string& text, const std::string& place, Deadline deadline);
  // An error that another process has reported, or that it has ended; nothing if all seems well. For loops that wait for something else:
  // a process may end after doing its part of that, so they give it a moment to be done.
  [[nodiscard]] std::optional<Error> trouble(const std::string& place);
  // Tells the others why this process is about to end.
  void report(const Error& error);

 private:
  struct Inside;
  explicit Control(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace meshplan
