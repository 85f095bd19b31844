// Ranks on GPUs over NCCL: one process for all, or one a GPU.
//
// One world communicator; every partition of the ranks is one ncclCommSplit of it, made once. Communicators do not block: every call is
// polled, every wait is a loop of queries with a deadline, and after a missed one the communicators are aborted.
//
// Collectives of equal counts in order run as they are. Uneven ones are padded to the largest count in scratch buffers and copied apart on
// the GPU; all_to_all and exchanges are grouped sends and receives of exact counts. Dtypes that NCCL cannot reduce (int16, float8 before
// Hopper) are cast to a wider one around the call.
#pragma once

#include <memory>

#include "replay/communicator.h"
#include "replay_nccl/gpu_device.h"
#include "replay_nccl/nccl_api.h"
#include "replay_nccl/rendezvous.h"

namespace meshplan {

struct NcclQuestion {
  NcclApi api;
  GpuDevice* device = nullptr;
  Rendezvous rendezvous;
  int64_t world = 1;  // ranks that the plan needs
  std::vector<int64_t> global_ids;
  std::chrono::milliseconds deadline{60'000};
};
// Makes the world communicator.
[[nodiscard]] Result<std::unique_ptr<Communicator>> open_nccl(const NcclQuestion& question);

}  // namespace meshplan
