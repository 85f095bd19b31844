#include "replay/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

namespace meshplan {
namespace {

// The message of the signal handler, prepared before each watched call. Owned by one watchdog at a
// time.
constexpr size_t longest = 400;
char now_at[longest] = "";
char whose[longest] = "";
std::atomic<bool> named{false};
std::atomic<Watchdog::OtherRanks::Name> name_gone{nullptr};
std::atomic<Watchdog::OtherRanks::Name> name_late{nullptr};
std::atomic<void (*)()> beat_now{nullptr};

// Words around the ranks that are the reason.
struct Around {
  const char* before;
  const char* after;
};

// One line in a single write, so that lines of several processes do not mix.
class Line {
 public:
  Line& add(const char* text) {
    const size_t n = std::min(std::strlen(text), sizeof text_ - 1 - length_);
    std::memcpy(text_ + length_, text, n);
    length_ += n;
    return *this;
  }
  // The reason for ending: the ranks that ended, or that are waited for, if known.
  Line& add_reason(const Around& gone, const Around& late, const char* unknown) {
    for (const auto& [words, name] :
         {std::pair{&gone, name_gone.load()}, std::pair{&late, name_late.load()}}) {
      char ranks[longest] = "";
      if (name != nullptr) name(ranks, longest);
      if (ranks[0] != '\0') return add(words->before).add(ranks).add(words->after);
    }
    return add(unknown);
  }
  void put() {
    text_[length_++] = '\n';
    if (::write(STDERR_FILENO, text_, length_) < 0) return;
  }

 private:
  char text_[4 * longest];
  size_t length_ = 0;
};

extern "C" void on_termination(int /*signal*/) {
  Line line;
  line.add("meshplan: ").add(whose).add(": ").add(named.load() ? now_at : "starting");
  line.add_reason({": stopped, because ", " ended"}, {": stopped while it waited for ", ""},
                  ": stopped from outside, or after another process ended with an error")
      .put();
  _exit(5);
}

}  // namespace

Watchdog::Watchdog(std::string who, std::string otherwise)
    : who_(std::move(who)), otherwise_(": not done within its deadline; " + otherwise) {
  std::strncpy(whose, who_.c_str(), longest - 1);
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(20), [this] { return stop_; })) {
      if (const auto beat = beat_now.load()) beat();
      const int64_t deadline = deadline_.load(std::memory_order_acquire);
      if (deadline != never &&
          std::chrono::steady_clock::now().time_since_epoch().count() > deadline) {
        Line line;
        line.add("meshplan: ").add(who_.c_str()).add(": ").add(now_at);
        line.add_reason({": not done within its deadline, because ", " ended"},
                        {": ", " did not arrive within the deadline"}, otherwise_.c_str())
            .put();
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

void Watchdog::name_ranks(const OtherRanks& others) {
  name_gone.store(others.gone);
  name_late.store(others.late);
  beat_now.store(others.beat);
}

void Watchdog::report_termination() {
  struct sigaction action = {};
  action.sa_handler = on_termination;
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace meshplan
