// Measured replays: the time of each step and each redistribution, compared with the prediction of
// the topology.
//
// A step is timed from a barrier to its end on the slowest rank; a whole redistribution from
// barrier to barrier. With ReplayOptions::graph both are recorded graphs; without, a step over NCCL
// has the start of a thread in it, which NCCL needs for calls that do not block
// (testdata/results/nccl.txt: 50 us for two ranks of a process). Every plan is checked on
// exact data before it is timed. Sizes and bandwidths follow nccl-tests:
//
//   op               size (bytes)                           busbw / algbw       algbw = size / time
//   all_gather       ranks x the largest member's box       (n-1)/n
//   reduce_scatter   ranks x the largest chunk              (n-1)/n
//   all_to_all       ranks x the largest pair's part        (n-1)/n
//   all_reduce       the largest member's box               2(n-1)/n
//   exchange         what the rank that receives most gets  1               (nccl-tests' sendrecv)
//
// Worked example: all_gather of float32 [1024, 1024] over 4 ranks in 200 us. Each rank holds 256 x
// 1024 x 4 B = 1 MiB; size = 4,194,304 B, count = 262,144 elements a rank, algbw = 4,194,304 B /
// 200 us = 20.97 GB/s, busbw = 20.97 x 3/4 = 15.73 GB/s: what all_gather_perf -b 4M prints for it.
//
// Compared with output of nccl-tests (tests/measure): all_reduce of 33,554,432 B of float over 8
// ranks in 195.40 us is 171.72 and 300.51 GB/s there and here (github.com/kvcache-ai/Mooncake, pull
// request 3484); reduce_scatter over 8 ranks of 128 B counts 4 floats
// (github.com/NVIDIA/nccl-tests, issue 128).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cost/step_load.h"
#include "measure/statistics.h"
#include "plan/plan.h"
#include "replay/communicator.h"
#include "replay/device.h"
#include "replay/report.h"

namespace meshplan {

struct MeasureOptions {
  ReplayOptions replay;
  int64_t warmup = 3;
  int64_t repetitions = 20;
  bool alone = false;  // of bundles: also their members one by one, in turns
};

struct StepTimes {
  Op op = Op::slice;
  std::string group;
  std::vector<std::string> mesh_dims;
  int64_t group_size = 1;
  int64_t level = -1;      // outermost level of the topology that it uses; -1: none
  int64_t size_bytes = 0;  // as above; local steps: what is copied
  // that the prediction counts for the rank that has most (exchange, all_to_all)
  int64_t peers = 0;
  // none: groups that do not look alike everywhere, two phases, local steps
  std::optional<StepLoad> load;
  // elements, as nccl-tests counts: a rank's part for gather, scatter and all_to_all
  int64_t count = 0;
  DType type = DType::float32;  // on the wire: the reduction's dtype where one is given
  std::optional<ReduceOp> redop;
  int64_t predicted_ns = 0;         // for the shape that is replayed
  std::vector<int64_t> samples_ns;  // the slowest rank's, one a repetition
};
// GB/s (1e9 bytes a second) at the median; 0 where nothing communicates.
[[nodiscard]] double algorithm_bandwidth(const StepTimes& step);
[[nodiscard]] double bus_bandwidth(const StepTimes& step);

struct RedistributionTimes {
  RedistributionReport replay;  // the check before the timing
  int64_t count = 1;            // how often the plan says that it happens
  DType dtype = DType::float32;
  std::vector<StepTimes> steps;
  int64_t predicted_ns = 0;
  std::vector<int64_t> samples_ns;  // whole
};

// A round of a bundle, as planned, or for the shapes that are replayed.
struct RoundFrame {
  Op op = Op::exchange;
  std::string group;
  int64_t stream = 0;
  int64_t wave = 0;
  int64_t parts = 0;
  int64_t wire_bytes = 0;    // 0: not known
  int64_t predicted_ns = 0;  // the same
};
struct WaveTimes {
  std::vector<size_t> rounds;         // in flight together
  int64_t predicted_ns = 0;           // 0: not known
  std::vector<int64_t> samples_ns{};  // the slowest rank's
};
struct BundleTimes {
  BundleReport replay;  // the check before the timing
  int64_t count = 1;
  bool smaller = false;  // shapes, or numbers of like tensors, than planned
  bool complete = true;  // whether every wave has a prediction
  std::vector<RoundFrame> rounds;
  std::vector<WaveTimes> waves;  // the last may have no rounds, only local steps
  int64_t predicted_ns = 0;
  int64_t predicted_alone_ns = 0;
  std::vector<int64_t> samples_ns;        // whole
  std::vector<int64_t> alone_samples_ns;  // its members one by one (MeasureOptions::alone)
};

struct MeasureReport {
  std::string backend;
  int64_t ranks = 0;
  bool is_root = true;
  std::string plan_digest;
  std::string spec_digest;
  Topology topology;
  ReplayOptions options;
  int64_t warmup = 0;       // 0 and
  int64_t repetitions = 0;  // 0: checked only, nothing was timed
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<RedistributionTimes> redistributions;
  std::vector<BundleTimes> bundles;
};
[[nodiscard]] ReplayReport replay_part(const MeasureReport& report);

// `meshplan run PLAN --measure`. Every process calls it; the samples are those of the slowest rank
// on all of them.
[[nodiscard]] Result<MeasureReport> measure(const Plan& plan, const MeasureOptions& options,
                                            Communicator& communicator, Device& device);

// The report of a replay without timing (`run --report FILE` without --measure).
[[nodiscard]] MeasureReport untimed(const Plan& plan, const ReplayOptions& options,
                                    const ReplayReport& replay);

// `run A --against B`: both plans in one process, interleaved, alternating which one runs first.
struct AgainstEntry {
  std::string id;
  Summary first;
  Summary second;
  PairedDifference difference;  // second - first
  // Random data: the largest error of each in ulp (merged beside unmerged).
  double first_ulp = 0;
  double second_ulp = 0;
  int64_t predicted_first_ns = 0;
  int64_t predicted_second_ns = 0;
};
struct AgainstReport {
  MeasureReport first;
  MeasureReport second;
  // redistributions that both have, by id, in the first plan's order
  std::vector<AgainstEntry> entries;
  std::vector<std::string> only_first;
  std::vector<std::string> only_second;
  // Of either plan: their members are among the entries, each by itself; rounds are not run.
  std::vector<std::string> bundles;
};
[[nodiscard]] Result<AgainstReport> measure_against(const Plan& first, const Plan& second,
                                                    const MeasureOptions& options,
                                                    Communicator& communicator, Device& device);

// Tables for people: nccl-tests' columns and words (size, count, type, redop, time, algbw, busbw,
// #wrong), then predicted and measured/predicted.
[[nodiscard]] std::string to_text(const MeasureReport& report);
// One line a redistribution: both medians with their intervals, the ratio, `~` where the difference
// is not significant, and what the plans promised.
[[nodiscard]] std::string to_text(const AgainstReport& report);

// JSON, schema meshplan/report/1 (schemas/report.schema.json).
[[nodiscard]] std::string write_report(const MeasureReport& report);
[[nodiscard]] std::string write_report(const AgainstReport& report);
// The timed steps in the JSON shape that nccl-tests writes with -J, one list of results.
[[nodiscard]] std::string write_nccl_tests_json(const MeasureReport& report);
// A timeline for Perfetto (Chrome trace JSON): the predicted steps on one track, the measured
// medians on the other.
[[nodiscard]] std::string write_timeline(const MeasureReport& report);

}  // namespace meshplan
