// Samples of several processes.
#pragma once

#include <chrono>
#include <vector>

#include "replay/communicator.h"

namespace meshplan {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline int64_t ns_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

// Replaces each list of samples by the largest of all processes, sample by sample. Collective.
[[nodiscard]] Status slowest_of_all(const std::vector<std::vector<int64_t>*>& lists,
                                    Communicator& communicator, Deadline deadline);

}  // namespace meshplan
