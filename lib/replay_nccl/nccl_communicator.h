// Ranks on GPUs over NCCL: one process for all ranks, or one per GPU.
//
// One world communicator; every partition of the ranks is one ncclCommSplit of it, made once.
// Communicators are non-blocking: every call is polled, every wait is a polling loop with a
// deadline, and after a missed deadline the communicators are aborted. Several processes also have
// control connections (replay_nccl/control.h) that identify missing processes; a watchdog ends a
// process that hangs in a library.
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
// Creates the world communicator.
[[nodiscard]] Result<std::unique_ptr<Communicator>> open_nccl(const NcclQuestion& question);

}  // namespace meshplan
