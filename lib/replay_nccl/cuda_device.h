// Buffers on NVIDIA GPUs: streams of each local rank, and kernels for local work.
#pragma once

#include <memory>

#include "replay_nccl/gpu_device.h"

namespace meshplan {

// `ranks` are this process's; rank i runs on GPU (first + i) mod the number of GPUs. Errors
// (environment) say what is missing: a driver, a GPU.
[[nodiscard]] Result<std::unique_ptr<GpuDevice>> open_cuda(const std::vector<int32_t>& ranks,
                                                           int64_t first);

}  // namespace meshplan
