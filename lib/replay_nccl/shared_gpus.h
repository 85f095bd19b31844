// Several ranks on one GPU, for checking data where there are fewer GPUs than ranks. NCCL refuses
// that unless it is told to allow it, and what it then takes says nothing about a real machine.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "replay_nccl/gpu_device.h"
#include "replay_nccl/rendezvous.h"

namespace meshplan {

struct SharedGpusQuestion {
  int nccl_version = 0;  // loaded: 22807 is 2.28.7
  Rendezvous rendezvous;
  int64_t world = 1;
  int64_t streams = 1;  // communicators of a rank at most in flight together
  GpuCounts gpus;
};

// Names and values of the variables that let the ranks of this run share GPUs; none where each has
// one of its own, or where nothing tells: of processes that `--launch` did not start, which of them
// are on one machine and see the same GPUs. Errors (environment): NCCL cannot do it so, or a GPU
// has too few multiprocessors for the kernels of its ranks, which wait for each other.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> variables_of_shared_gpus(
    const SharedGpusQuestion& question);

}  // namespace meshplan
