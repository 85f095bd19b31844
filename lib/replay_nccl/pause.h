// How a thread waits for what it polls.
#pragma once

#include <chrono>
#include <optional>
#include <thread>

#include "replay/communicator.h"

namespace meshplan {

// Backoff: short waits are polled continuously, long ones yield the core.
class Pause {
 public:
  void rest() {
    if (++turns_ < 1000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  // Rate limit for checks that are too expensive for every iteration.
  [[nodiscard]] bool every_so_often() const { return turns_ % 256 == 255; }
  // Whether this was asked for the first time so long ago.
  bool worried_for(std::chrono::milliseconds time) {
    const auto now = std::chrono::steady_clock::now();
    if (!worried_since_) worried_since_ = now;
    return now - *worried_since_ > time;
  }

 private:
  std::optional<Deadline> worried_since_;
  int turns_ = 0;
};

}  // namespace meshplan
