#include "replay_mpi/neighbours.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace meshplan {
namespace {

// Each in a cache line of its own: what one stores costs the others nothing.
struct alignas(64) Neighbour {
  std::atomic<int64_t> calls{0};    // that began, and that ended: odd in a call
  std::atomic<int64_t> beat_ns{0};  // when it last said that it runs
  std::atomic<int32_t> process{0};  // 0: not joined yet
  std::atomic<int32_t> may_be_gone{0};
  std::array<char, 24> name{};
};
static_assert(std::atomic<int32_t>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

// What says nothing for so long does not run.
constexpr int64_t silence_ns = 2'000'000'000;

// Set once, before signal handlers are installed.
Neighbour* neighbours = nullptr;
int count = 0;
int own = 0;
int64_t own_calls = 0;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void count_calls(int64_t more) {
  own_calls += more;
  if (neighbours != nullptr) neighbours[own].calls.store(own_calls, std::memory_order_release);
}

// A list of names in a text of limited size.
class NameList {
 public:
  NameList(char* text, size_t room) : text_(text), room_(room) { text_[0] = '\0'; }
  void add(const Neighbour& rank) {
    const size_t length = std::strlen(rank.name.data());
    if (at_ + length + 3 > room_) return;
    if (at_ > 0) {
      text_[at_++] = ',';
      text_[at_++] = ' ';
    }
    std::memcpy(text_ + at_, rank.name.data(), length + 1);
    at_ += length;
  }
  [[nodiscard]] bool empty() const { return at_ == 0; }

 private:
  char* text_;
  size_t room_;
  size_t at_ = 0;
};

// Formats "/proc/PID/stat" without allocating.
std::array<char, 32> stat_path(int32_t process) {
  std::array<char, 12> digits{};
  size_t n = 0;
  for (int32_t rest = process; rest > 0; rest /= 10)
    digits[n++] = static_cast<char>('0' + rest % 10);
  std::array<char, 32> path{};
  size_t at = 0;
  for (char c : std::string_view("/proc/")) path[at++] = c;
  while (n > 0) path[at++] = digits[--n];
  for (char c : std::string_view("/stat")) path[at++] = c;
  return path;
}

// Whether the process has exited or is a zombie.
bool is_gone(int32_t process) {
  const int file = ::open(stat_path(process).data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno == ENOENT || errno == ESRCH;
  std::array<char, 128> text{};
  const auto n = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (n <= 0) return true;
  // "PID (program) STATE ...": the program name may contain anything, so search for the last
  // bracket.
  const char* bracket = std::strrchr(text.data(), ')');
  return bracket != nullptr && bracket[1] == ' ' && (bracket[2] == 'Z' || bracket[2] == 'X');
}

Neighbour* map_page(int file, size_t bytes) {
  void* page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<Neighbour*>(page);
}

}  // namespace

void join_neighbours(const std::string& name) {
  if (neighbours != nullptr) return;
  MPI_Comm machine = MPI_COMM_NULL;
  int number = 0;
  int size = 0;
  if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) !=
      MPI_SUCCESS)
    return;
  MPI_Comm_rank(machine, &number);
  MPI_Comm_size(machine, &size);
  const size_t bytes = static_cast<size_t>(size) * sizeof(Neighbour);
  // The first process creates the page, the others open it through /proc.
  std::array<int32_t, 2> place{static_cast<int32_t>(getpid()), -1};
  if (number == 0) {
    place[1] = memfd_create("meshplan", MFD_CLOEXEC);
    if (place[1] >= 0 && ::ftruncate(place[1], static_cast<off_t>(bytes)) != 0) place[1] = -1;
  }
  int file = place[1];
  MPI_Bcast(place.data(), 2, MPI_INT32_T, 0, machine);
  if (place[1] >= 0 && number != 0) {
    const std::string path =
        "/proc/" + std::to_string(place[0]) + "/fd/" + std::to_string(place[1]);
    file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  Neighbour* page = file >= 0 ? map_page(file, bytes) : nullptr;
  if (page != nullptr) {
    Neighbour& mine = page[number];
    std::strncpy(mine.name.data(), name.c_str(), mine.name.size() - 1);
    mine.beat_ns.store(now_ns());
    mine.process.store(static_cast<int32_t>(getpid()));
    count = size;
    own = number;
    neighbours = page;
  }
  MPI_Barrier(machine);  // the first process keeps the file open until all have opened it
  if (file >= 0) ::close(file);
  MPI_Comm_free(&machine);
}

void mark_exit_expected() {
  if (neighbours != nullptr) neighbours[own].may_be_gone.store(1);
}

void name_gone_neighbours(char* text, size_t room) {
  NameList names(text, room);
  mark_exit_expected();
  for (int i = 0; i < count && neighbours != nullptr; ++i) {
    const Neighbour& other = neighbours[i];
    const int32_t process = other.process.load();
    // Checked in this order: a process marks its exit as expected before it exits.
    if (i == own || process == 0 || !is_gone(process) || other.may_be_gone.load() != 0) continue;
    names.add(other);
  }
}

void enter_call() { count_calls(1); }
void leave_call() { count_calls(1); }
void pass_call() { count_calls(2); }

void beat() {
  if (neighbours != nullptr) neighbours[own].beat_ns.store(now_ns(), std::memory_order_relaxed);
}

void name_late_neighbours(char* text, size_t room) {
  NameList names(text, room);
  if (neighbours == nullptr) return;
  const int64_t mine = neighbours[own].calls.load();
  if (mine % 2 == 0) return;  // in no call
  const int64_t silent = now_ns() - silence_ns;
  int64_t least = mine;
  for (int i = 0; i < count; ++i) {
    const Neighbour& other = neighbours[i];
    if (i == own || other.process.load() == 0 || other.may_be_gone.load() != 0) continue;
    if (other.beat_ns.load() < silent) names.add(other);
    least = std::min(least, other.calls.load());
  }
  if (!names.empty() || least % 2 != 0) return;
  for (int i = 0; i < count; ++i) {
    const Neighbour& other = neighbours[i];
    if (other.process.load() != 0 && other.may_be_gone.load() == 0 && other.calls.load() == least)
      names.add(other);
  }
}

}  // namespace meshplan
