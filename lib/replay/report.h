// Options and report of a replay.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "replay/data.h"
#include "replay/fault.h"

namespace meshplan {

struct ReplayOptions {
  // Redistributions and bundles; empty: all. A member that is named runs by itself.
  std::vector<std::string> only_ids;
  DataKind data = DataKind::exact;
  uint64_t seed = 1;
  bool shrink = false;     // --shrink: the smallest equivalent shape
  bool full_size = false;  // never shrink
  // A redistribution with more bytes over all ranks and states is shrunk automatically, unless
  // full_size.
  int64_t shrink_above_bytes = int64_t{32} << 20;
  // The same of a bundle, over all its tensors.
  int64_t shrink_bundle_above_bytes = int64_t{256} << 20;
  std::vector<InjectedFault> faults;
  // also run and time each redistribution as one recorded graph
  bool graph = false;
  int64_t threads = 0;                              // of the host backend; 0: one per core
  std::chrono::milliseconds step_deadline{60'000};  // if exceeded, the run ends
  size_t keep_differences = 8;                      // per redistribution
  // Called before each redistribution: number done, total, id. For progress output.
  std::function<void(size_t, size_t, const std::string&)> progress;
};

// Where in a bundle something is wrong.
struct PlaceInBundle {
  std::string id;      // of the redistribution
  int64_t tensor = 0;  // which of its like tensors
  int64_t round = -1;  // that brought it; -1: none did
  bool operator==(const PlaceInBundle&) const = default;
};

// One wrong element.
struct Difference {
  int64_t rank = 0;  // global id
  int64_t step = 0;  // the first step after which the rank's data is wrong; -1: before the first
  std::vector<int64_t> index;
  std::string expected;
  std::string found;
  std::optional<PlaceInBundle> bundle{};
  bool operator==(const Difference&) const = default;
};

// A write past the end of a buffer.
struct Overrun {
  int64_t rank = 0;  // global id
  int64_t step = 0;  // that wrote the box; -1: the source, or a message of a bundle's round
  std::optional<PlaceInBundle> bundle{};
  bool operator==(const Overrun&) const = default;
};

struct RedistributionReport {
  std::string id;
  // An earlier one that it repeats, which was replayed for both: what follows was found there.
  std::string same_as{};
  std::vector<int64_t> shape;         // as planned
  std::vector<int64_t> replay_shape;  // as replayed
  bool shrunk = false;
  int64_t ranks = 0;  // participating
  int64_t steps = 0;
  int64_t checked = 0;  // elements, over all ranks
  int64_t wrong = 0;
  std::vector<Overrun> overruns;
  std::vector<Difference> differences;  // the first ones, by rank, then index
  // only zeros were checked, as the dtype is too narrow (averages in narrow integers)
  bool weak = false;
  // Random data only: against float64, in ulp and to the largest magnitude of the results.
  double largest_ulp = 0;
  double largest_relative = 0;
};

// What a bundle's rounds did; of the shapes and like tensors that were replayed.
struct BundleReport {
  std::string id;
  int64_t members = 0;
  int64_t tensors = 0;   // as planned
  int64_t replayed = 0;  // of those that rounds treat alike some may stand for all
  bool shrunk = false;   // some shape was
  int64_t ranks = 0;     // participating
  int64_t rounds = 0;
  int64_t waves = 0;
  int64_t checked = 0;  // elements, over all ranks and tensors
  int64_t wrong = 0;
  std::vector<Overrun> overruns;
  std::vector<Difference> differences;  // the first ones, by rank
  bool weak = false;                    // only zeros were checked of some member
  double largest_ulp = 0;
  double largest_relative = 0;
  // What any rank had staged at most, and with sources and targets; beside what the plan says.
  int64_t staging_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t planned_staging_bytes = 0;
  int64_t planned_peak_bytes = 0;
  int64_t max_staging_bytes = 0;  // 0: no limit
  // By round: what any rank sent and received.
  std::vector<int64_t> messages;
  std::vector<int64_t> planned_messages;
  int64_t max_messages = 0;
};

struct ReplayReport {
  std::string backend;
  int64_t ranks = 0;  // of the world
  // With several processes: where each runs ("process N", host), as in Communicator::describe.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<RedistributionReport> redistributions;  // that are not run as members of a bundle
  std::vector<BundleReport> bundles;
  bool is_root = true;  // only the root process prints the report
};

// Each where it was compared: of those that repeat another, once.
[[nodiscard]] int64_t checked_elements(const ReplayReport& report);
[[nodiscard]] int64_t wrong_elements(const ReplayReport& report);
// Whether every element on every rank was correct, no guard was overwritten and every bundle kept
// its limits.
[[nodiscard]] bool all_right(const ReplayReport& report);
// What is not right in one line: "3 of 64 elements are wrong; 1 buffer is written past its end;
// bundle 'sync' staged 96 B, above its limit of 64 B". Empty: all is.
[[nodiscard]] std::string what_is_wrong(const ReplayReport& report);
// "rank 3, step 1, index [0, 4]: expected 7, found -12"
// "rank 3, round 2: w1, tensor 4, step 1, index [0, 4]: expected 7, found -12"
[[nodiscard]] std::string to_text(const Difference& difference);
// The report as text: one line per redistribution and per bundle followed by its first differences,
// and a last line with the totals. One that repeats another names it.
[[nodiscard]] std::string to_text(const ReplayReport& report);

}  // namespace meshplan
