// Enqueues the part of one rank in a call as NCCL functions on a stream of it.
//
// Collectives of equal counts in order run as they are. Uneven ones are padded to the largest count
// in scratch buffers and copied apart on the GPU. all_to_all is ncclAlltoAll where every pair's
// part is equal and the library has it; everything else that goes by pairs is grouped sends and
// receives of exact counts. Dtypes that NCCL cannot reduce (int16, float8 before Hopper) are cast
// to a wider one around the call.
#pragma once

#include <vector>

#include "replay/communicator.h"
#include "replay_nccl/gpu_device.h"
#include "replay_nccl/nccl_library.h"

namespace meshplan {

// Scratch buffers of a rank's stream. Calls of one stream share them: each is done with them before
// the next begins.
enum class ScratchUse : int { send, receive, wide_send, wide_receive, notes_send, notes_receive };
// The slot of GpuDevice::scratch.
[[nodiscard]] constexpr int scratch_slot(ScratchUse use, int64_t stream) {
  return static_cast<int>(stream) * 6 + static_cast<int>(use);
}

// Local work that has to follow the call on its stream.
struct FollowUp {
  int32_t rank = 0;
  std::vector<LocalOp> ops;
};

struct EnqueueQuestion {
  const NcclLibrary* nccl = nullptr;
  GpuDevice* device = nullptr;
  const Call* call = nullptr;
  const RankCall* rank = nullptr;
  NcclComm comm = nullptr;
  int64_t number = 0;  // of the rank's streams
  void* stream = nullptr;
};
// What NCCL says to a call at a place, as an error unless it is done or busy.
[[nodiscard]] Status nccl_good(const NcclLibrary& nccl, NcclCode code, const std::string& place);
// Inside an open group of NCCL.
[[nodiscard]] Status enqueue_call(const EnqueueQuestion& question, std::vector<FollowUp>& after);

}  // namespace meshplan
