// Calls in flight together on streams and communicators of their own.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "replay/communicator.h"
#include "replay_nccl/nccl_comms.h"

namespace meshplan {

// Streams of a rank on which calls are in flight at once; further ones share these. A kernel of
// NCCL commonly has up to 32 blocks, which wait for other ranks, each on a multiprocessor: four
// kernels fit on the 132 of an H100. Four streams and NCCL's own also fit into the 8 queues from
// which CUDA feeds a GPU unless told otherwise (CUDA_DEVICE_MAX_CONNECTIONS). The plans that the
// planner makes today have two rounds in flight.
constexpr int64_t most_streams = 4;

[[nodiscard]] inline int64_t stream_of(const Call& call) { return call.stream % most_streams; }

// Which copy of its communicator each call of a wave runs on: one for every stream that uses it.
// All members of a group see its calls in the same order, so they choose alike.
class CopiesInUse {
 public:
  [[nodiscard]] int64_t copy(const NcclComms::Group& group, int64_t stream) {
    std::vector<int64_t>& streams = streams_[group];
    const auto at = std::find(streams.begin(), streams.end(), stream);
    if (at != streams.end()) return at - streams.begin();
    streams.push_back(stream);
    return std::ssize(streams) - 1;
  }

 private:
  std::map<NcclComms::Group, std::vector<int64_t>> streams_;
};

// What each communicator runs now: for the message when it fails.
using Running = std::map<NcclComm, const Call*>;

}  // namespace meshplan
