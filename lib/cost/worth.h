// What a communicator costs, and how far predicted times are to be believed: what advice to declare
// another group must be worth.
//
//     all_reduce over 64 ranks saves 10 us a run of the file
//     its communicator   1 s + 64 x 2.7 ms = 1.2 s to start, 688 MiB: repaid after 118,000 runs
//
// Sources, of NCCL. Start-up beside the loading of kernels, which only a job's first communicator
// waits for: 0.24 s (8 GPUs, nccl-tests issue 273), 2.3 s (8, NCCL 2.22, nccl issue 534), 2.5 s (8,
// nccl issue 1646), 0.57 s (16, nccl issue 1412), 265 s at 96,000 (arXiv 2510.20171). Memory: what
// a first all_reduce of a group took on A100 (nccl issue 964); it follows from channels and their
// buffers and grows no more beyond two hosts (nccl issue 986). Sends and receives take more: 3.3 GB
// for an all_to_all of 8 H100 (nccl issue 1685).
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace meshplan {

// Picoseconds until the communicators of one layout, which start at the same time, can be used.
[[nodiscard]] int64_t communicator_start_ps(int64_t ranks);
// Device memory that a rank holds for one: bytes.
[[nodiscard]] int64_t communicator_bytes(int64_t ranks);

// Of two predicted times neither is the shorter for sure unless one is this many hundredths of the
// other: the geometric mean of the factor between measured and predicted on published timings.
[[nodiscard]] int64_t model_error_percent(const Topology& topology);

// How often a file is run at most: the steps of a long training run.
constexpr int64_t most_runs = 1'000'000;

}  // namespace meshplan
