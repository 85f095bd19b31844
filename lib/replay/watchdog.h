// Ends the process if an uninterruptible library call exceeds its deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace meshplan {

// Watches one call at a time. Starting a watch costs two stores; a background thread checks every
// few milliseconds.
class Watchdog {
 public:
  // `who`: prefix of messages, such as "rank 3". After a missed deadline it prints "WHO: PLACE: not
  // done within its deadline", or which ranks did not arrive, and exits with code 5, upon which the
  // launcher ends the other processes. `otherwise`: the reason where no rank is known.
  explicit Watchdog(std::string who,
                    std::string otherwise = "another rank hangs or the deadline is too short");
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void watch(const std::string& place, std::chrono::steady_clock::time_point deadline);
  void rest() { deadline_.store(never, std::memory_order_release); }

  // What is known of the other ranks; any of these may be null. `gone` and `late` write ranks
  // ("rank 2, rank 5") into `text`, of that size, zero-terminated; empty if none.
  // Async-signal-safe.
  struct OtherRanks {
    using Name = void (*)(char* text, size_t room);
    Name gone = nullptr;       // those that exited unexpectedly
    Name late = nullptr;       // those that the watched call waits for
    void (*beat)() = nullptr;  // called again and again while this process runs
  };
  // Messages of this program name these ranks.
  static void name_ranks(const OtherRanks& others);
  // On SIGTERM, which launchers send when another process has ended, prints the same kind of
  // message and exits with code 5.
  static void report_termination();

 private:
  static constexpr int64_t never = INT64_MAX;
  std::string who_;
  std::string otherwise_;
  std::atomic<int64_t> deadline_{never};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace meshplan
