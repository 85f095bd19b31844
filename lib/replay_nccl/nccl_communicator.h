// Ranks on GPUs over NCCL: one process for all ranks, or one per GPU.
//
// One world communicator; every partition of the ranks is one ncclCommSplit of it, made once, and
// once more for each further call that uses it at the same time (replay_nccl/nccl_comms.h). Calls
// in flight together (Communicator::run_together) are on a CUDA stream each: events let these begin
// after the main stream, where packing is, and let it go on, to unpack, after all of them.
// Communicators do not block: every call is polled, every wait is a polling loop with a deadline,
// and after a missed deadline the communicators are aborted. Several processes also have control
// connections (replay_nccl/control.h) that identify missing processes; a watchdog ends a process
// that hangs in a library.
//
// NCCL starts a thread for every group of calls that do not block, some tens of microseconds. What
// is measured is what programs wait for whose calls block, as PyTorch's do: there the calls of
// steps block, too, and a process that hangs in one is the watchdog's.
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
  int64_t streams = 1;  // on which calls are in flight together, at most
  NcclLibrary::Calls calls = NcclLibrary::Calls::do_not_block;  // of steps
};
// Creates the world communicator.
[[nodiscard]] Result<std::unique_ptr<Communicator>> open_nccl(const NcclQuestion& question);

}  // namespace meshplan
