// Where the outside world begins: collectives between ranks that may live in other processes.
//
// A call is bulk-synchronous and names everything: for each rank that this process plays, its group (replay ranks, ascending; the position
// in it is the member number), where each chunk goes to or comes from, and how many elements it has. Counts may differ between members; a
// backend whose library wants equal counts pads. Both ends of a chunk always agree, because both come from the same flow (transfer/flow.h).
//
//     kind             sends                                     receives
//     all_gather       one chunk: the rank's box                 one chunk a member, in member order
//     all_to_all       one chunk a member                        one chunk a member
//     reduce_scatter   one chunk a member                        one chunk
//     all_reduce       one chunk                                 one chunk
//     send_receive     any chunks, ascending by peer             any chunks, ascending by peer
//
// Every call has a deadline: a rank that exits, hangs or differs ends the run with an error, never a hang.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

enum class CallKind : uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all, send_receive };
[[nodiscard]] const char* to_text(CallKind kind);

struct Chunk {
  int32_t peer = 0;  // replay rank at the other end
  std::byte* data = nullptr;
  int64_t count = 0;  // elements
};

struct RankCall {
  int32_t rank = 0;                             // a replay rank of this process
  const std::vector<int32_t>* group = nullptr;  // replay ranks, ascending
  std::vector<Chunk> sends;
  std::vector<Chunk> receives;
  // all_to_all: how many elements every member gives every other one, where that is one number for all pairs of the group, so that each
  // member knows it of all; -1 where pairs differ.
  int64_t equal_parts = -1;
};

struct Call {
  CallKind kind = CallKind::all_gather;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;  // avg combines like sum; dividing is the executor's
  std::vector<RankCall> ranks;
  std::string place;  // "redistribution 'x', step 2": for messages
};

using Deadline = std::chrono::steady_clock::time_point;

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual std::string name() const = 0;  // "host", "mpi", "nccl"
  // Replay ranks that exist, and those that this process plays, ascending.
  [[nodiscard]] virtual int64_t world() const = 0;
  [[nodiscard]] virtual std::vector<int32_t> local_ranks() const = 0;
  // Whether this process prints the result.
  [[nodiscard]] virtual bool speaks() const = 0;

  // Makes the communicators of one partition: disjoint groups. Every process calls it with the same groups in the same order, before the
  // first call on them. Asking again for a known partition is free.
  virtual Status prepare(const std::vector<std::vector<int32_t>>& groups, Deadline deadline) = 0;
  virtual Status run(const Call& call, Deadline deadline) = 0;

  // Waits until every process is here; after the deadline the error names those that are not, and `place`.
  virtual Status roll_call(const std::string& place, Deadline deadline) = 0;
  // Waits until every process is here, as fast as the library can.
  virtual Status barrier(Deadline deadline) = 0;
  // What every process says, in process order: for digests, counts and messages.
  virtual Result<std::vector<std::string>> tell_all(const std::string& text, Deadline deadline) = 0;
  // After an error that other processes may not have seen: ends them all, this one last, with the error's exit code. Returns only where
  // there are no other processes.
  virtual void abort(const Error& error) = 0;
  // What the report says about the environment: library and version compiled for and loaded, which rank runs where. Every process calls it.
  virtual Result<std::vector<std::pair<std::string, std::string>>> describe(Deadline deadline) = 0;
};

}  // namespace meshplan
