// Ranks on GPUs over NCCL: one process for all, or one a GPU.
//
// One world communicator; every partition of the ranks is one ncclCommSplit of it, made once. Communicators do not block: every call is
// polled, every wait is a loop of queries with a deadline, and after a missed one the communicators are aborted. Several processes also
// hold a line of their own (replay_nccl/control.h), by which they learn who is missing; a watchdog ends a process that a library holds.
#pragma once

#include <memory>

#include "replay/communicator.h"
#include "replay_nccl/gpu_device.h"
#include "replay_nccl/nccl_library.h"
#include "replay_nccl/rendezvous.h"

namespace meshplan {

struct NcclQuestion {
  NcclLibrary nccl;
  GpuDevice* device = nullptr;
  Rendezvous rendezvous;
  int64_t world = 1;  // ranks that the plan needs
  std::vector<int64_t> global_ids;
  std::chrono::milliseconds deadline{60'000};
  Registration registration = Registration::none;
};
// Makes the world communicator.
[[nodiscard]] Result<std::unique_ptr<Communicator>> open_nccl(const NcclQuestion& question);

}  // namespace meshplan
