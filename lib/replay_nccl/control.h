// Control messages between the processes of a run, outside of NCCL: a star of TCP connections to
// process 0.
//
// NCCL does not report which rank is missing and does not end a collective that a rank never joins.
// Here an exiting process closes its connection and a hanging one misses the deadline, so the
// others know which rank it was. Status texts are also exchanged here, without GPU memory.
//
// Process 0 listens on the address that the others connect to: on loopback only, if all are on one
// machine. From a new connection it reads only the 25 bytes that authenticate a process of the run,
// and closes it if they are wrong or do not arrive in time.
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
    std::string host;                               // address of process 0
    std::function<std::string(int64_t)> rank_text;  // name of a process in messages: "rank 3"
    Deadline deadline;
    std::chrono::milliseconds introduction{10'000};  // time limit for authentication
    // Broadcasts 16 bytes of process 0: its port and a secret. Called once by every process.
    std::function<Result<std::string>(const std::string&)> share;
  };
  // Collective. Errors (environment): process 0 cannot be reached, a process is missing.
  [[nodiscard]] static Result<std::unique_ptr<Control>> open(const Question& question);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // All-gather of texts in process order. Errors name processes that have exited or missed the
  // deadline, or forward the error of another process.
  [[nodiscard]] Result<std::vector<std::string>> gather(const std::string& text,
                                                        const std::string& place,
                                                        Deadline deadline);
  // After a missed deadline all processes that still run tell each other: the error that names
  // those that do not; empty if all do.
  [[nodiscard]] std::optional<Error> missing(const std::string& place);
  // The error of another process, or that it has exited; empty if none. For polling loops: a
  // process may exit after finishing its part, so allow a moment for completion.
  [[nodiscard]] std::optional<Error> trouble(const std::string& place);
  // Sends the reason of the imminent exit of this process to the others.
  void report(const Error& error);

 private:
  struct Inside;
  explicit Control(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace meshplan
