// Ends the process when a call of a library that cannot be interrupted outlasts its deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace meshplan {

// One call is watched at a time. Watching costs two stores; a thread of its own looks every few milliseconds.
class Watchdog {
 public:
  // `who`: what messages start with, such as "rank 3". After a missed deadline it prints "WHO: PLACE: not done within its deadline" and
  // ends the process with exit code 5, by which the launcher ends the others.
  explicit Watchdog(std::string who);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void watch(const std::string& place, std::chrono::steady_clock::time_point deadline);
  void rest() { deadline_.store(never, std::memory_order_release); }

  // Writes who has ended without a reason into `text` of so many bytes, and a zero; only the zero where it knows of nobody. A signal
  // handler may call it.
  using NameGone = void (*)(char* text, size_t room);
  // Prints the same kind of message and ends with exit code 5 on SIGTERM, which launchers send when another process has ended. Messages
  // name who that was where `gone` knows.
  static void report_termination(NameGone gone = nullptr);

 private:
  static constexpr int64_t never = INT64_MAX;
  std::string who_;
  std::atomic<int64_t> deadline_{never};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace meshplan
