// Threads where the system may give fewer than are asked for: limits of processes and of memory.
#pragma once

#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace meshplan {

// So many threads that run `work`, or as many as the system gives: the caller does what they leave.
[[nodiscard]] inline std::vector<std::thread> start_threads(size_t count,
                                                            const std::function<void()>& work) {
  std::vector<std::thread> threads;
  threads.reserve(count);
  try {
    while (threads.size() < count) threads.emplace_back(work);
  } catch (const std::system_error&) {
    // It gives no more.
  }
  return threads;
}

}  // namespace meshplan
