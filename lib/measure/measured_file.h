// Measured collectives out of files, for calibration: whatever people have.
//
//     ours            {"schema": "meshplan/report/1", ...}   run --measure --report, also --against
//     nccl-tests      # Collective test starting: all_reduce_perf      its text (a log, or several
//                     #  Rank  0 Group  0 Pid ... on node0 device ...  one after the other), and
//                          33554432  8388608  float  sum  -1  182.9 ... its JSON (-J)
//     NCCL Inspector  {"header": {...}, "metadata": {...}, "coll_perf": {...}}   one record a line
//
// Sizes are nccl-tests', times those of the slowest rank; of nccl-tests the out-of-place columns,
// or the in-place ones where those are empty; of Inspector's records of one collective the shortest
// (the rank that came last waited for none), by the GPU's clock.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cost/calibrate.h"

namespace meshplan {

// What was read and cannot be used, by reason.
struct UnusedRows {
  std::string place;  // of the first
  std::string why;
  int64_t count = 1;
};

struct FoundRow {
  MeasuredRow row;       // its members are not known yet where it has none
  int64_t ranks = 0;     // of the group
  int64_t per_host = 0;  // of them in each host
};

struct MeasuredFile {
  std::optional<Topology> base;  // of our reports: what the plan was made for
  std::vector<FoundRow> rows;
  int64_t host_ranks = 0;   // the most that a host has
  bool one_domain = false;  // hosts share a rack's links (GB200, GB300)
  std::vector<UnusedRows> unused;
};
void add_unused(MeasuredFile& file, std::string place, std::string why);
// What to say of bytes that moved in no time: `time` as the file has it, in `unit`.
[[nodiscard]] std::string no_time_text(std::string_view time, const char* unit, int64_t bytes,
                                       int64_t ranks);

// Errors (bad_input), a time of less than half a nanosecond for bytes that moved among them, start
// with `file` and the place in it; any bytes give a result or an error.
[[nodiscard]] Result<MeasuredFile> read_measured(std::string_view text, const std::string& file);

// The op that a program of nccl-tests measures, by its name: "all_reduce_perf".
[[nodiscard]] std::optional<Op> program_op(std::string_view text);

struct MeasuredRows {
  Topology base;
  std::vector<MeasuredRow> rows;
};
// All files together, on `base`, or else the first report's topology, or else hosts and what is
// between them, as the logs name them.
[[nodiscard]] Result<MeasuredRows> settle_rows(const std::vector<MeasuredFile>& files,
                                               const std::optional<Topology>& base);

// A line a row (op, group, size, measured, predicted, factor), then how near they are.
[[nodiscard]] std::string to_text(const Calibration& calibration);

}  // namespace meshplan
