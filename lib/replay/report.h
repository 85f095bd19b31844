// What a replay is asked and what it answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "replay/data.h"
#include "replay/fault.h"

namespace meshplan {

struct ReplayOptions {
  std::vector<std::string> only_ids;  // empty: every redistribution
  DataKind data = DataKind::exact;
  uint64_t seed = 1;
  bool shrink = false;     // --shrink: the smallest alike shape
  bool full_size = false;  // never shrink
  // Above this many bytes over all ranks and states a redistribution is shrunk by itself, unless full_size.
  int64_t shrink_above_bytes = int64_t{32} << 20;
  std::vector<InjectedFault> faults;
  bool graph = false;                               // also run each redistribution as one recorded graph, and time that
  int64_t threads = 0;                              // of the host; 0: one a core
  std::chrono::milliseconds step_deadline{60'000};  // a step that takes longer ends the run
  size_t keep_differences = 8;                      // of each redistribution
  // Called before each redistribution: number done, number of all, id. For a progress line.
  std::function<void(size_t, size_t, const std::string&)> progress;
};

// One wrong element.
struct Difference {
  int64_t rank = 0;  // global id
  int64_t step = 0;  // the first step after which the rank's data is wrong; -1: before the first
  std::vector<int64_t> index;
  std::string expected;
  std::string found;
  bool operator==(const Difference&) const = default;
};

// A buffer that was written past its end.
struct Overrun {
  int64_t rank = 0;  // global id
  int64_t step = 0;  // whose new box it is; -1: the source
  bool operator==(const Overrun&) const = default;
};

struct RedistributionReport {
  std::string id;
  std::vector<int64_t> shape;         // as planned
  std::vector<int64_t> replay_shape;  // as replayed
  bool shrunk = false;
  int64_t ranks = 0;  // that took part
  int64_t steps = 0;
  int64_t checked = 0;  // elements, over all ranks
  int64_t wrong = 0;
  std::vector<Overrun> overruns;
  std::vector<Difference> differences;  // the first ones, by rank, then index
  bool weak = false;                    // the dtype is too narrow for data that is not zero (averages in narrow integers)
  // Random data only: against float64.
  double largest_ulp = 0;
  double largest_relative = 0;
};

struct ReplayReport {
  std::string backend;
  int64_t ranks = 0;  // of the world
  // Several processes: what each says about where it runs ("process N", host), as Communicator::describe gives it.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<RedistributionReport> redistributions;
  bool speaks = true;  // false on processes other than the first: the caller prints nothing there
};

[[nodiscard]] int64_t checked_elements(const ReplayReport& report);
[[nodiscard]] int64_t wrong_elements(const ReplayReport& report);
// Every element of every rank was right and no guard was broken.
[[nodiscard]] bool all_right(const ReplayReport& report);
// "rank 3, step 1, index [0, 4]: expected 7, found -12"
[[nodiscard]] std::string to_text(const Difference& difference);
// The report for people: one line a redistribution with its first differences below, and a last line with the totals.
[[nodiscard]] std::string to_text(const ReplayReport& report);

}  // namespace meshplan
