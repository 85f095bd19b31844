#include "replay/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace meshplan {
namespace {

// What a signal handler may print: written before each watched call. One watchdog at a time owns it.
constexpr size_t longest = 400;
char now_at[longest] = "";
char whose[longest] = "";
std::atomic<bool> named{false};

void put(const char* text) {
  const auto n = std::strlen(text);
  if (::write(STDERR_FILENO, text, n) < 0) return;
}

extern "C" void on_termination(int /*signal*/) {
  put("meshplan: ");
  put(whose);
  put(": ");
  put(named.load() ? now_at : "starting");
  put(": stopped, because another process has ended\n");
  _exit(5);
}

}  // namespace

Watchdog::Watchdog(std::string who) : who_(std::move(who)) {
  std::strncpy(whose, who_.c_str(), longest - 1);
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(20), [this] { return stop_; })) {
      const int64_t deadline = deadline_.load(std::memory_order_acquire);
      if (deadline != never && std::chrono::steady_clock::now().time_since_epoch().count() > deadline) {
        put("meshplan: ");
        put(who_.c_str());
        put(": ");
        put(now_at);
        put(": not done within its deadline; another rank hangs, or the deadline is too short\n");
        _exit(5);
      }
    }
  });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watchdog::watch(const std::string& place, std::chrono::steady_clock::time_point deadline) {
  if (place.compare(0, longest - 1, now_at) != 0) {
    named.store(false);
    const size_t n = std::min(place.size(), longest - 1);
    std::memcpy(now_at, place.data(), n);
    now_at[n] = '\0';
    named.store(true);
  }
  deadline_.store(deadline.time_since_epoch().count(), std::memory_order_release);
}

void Watchdog::report_termination() {
  struct sigaction action = {};
  action.sa_handler = on_termination;
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace meshplan
