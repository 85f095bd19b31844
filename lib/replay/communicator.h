// The interface to communication libraries: collectives between ranks that may be in other
// processes.
//
// A call is bulk-synchronous and explicit: for each local rank, its group (replay ranks, ascending;
// the position in it is the member number), the peer and the number of elements of each chunk.
// Counts may differ between members; a backend whose library requires equal counts pads. Both ends
// of a chunk agree because both are derived from the same transfers (transfer/step_transfers.h).
//
//     op               sends                                receives
//     all_gather       one chunk: the box of the rank       one chunk per member, in member order
//     all_to_all       one chunk per member                 one chunk per member
//     reduce_scatter   one chunk per member                 one chunk
//     all_reduce       one chunk                            one chunk
//     exchange         any chunks, ascending by peer        any chunks, ascending by peer
//
// These are the columns `sends` and `receives` of plan/op_table.h. The one chunk that a rank
// receives names as its peer the rank whose box comes first in it.
//
// Every call has a deadline: if a rank exits, hangs or makes a different call, the run ends with an
// error instead of hanging.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/op_table.h"
#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

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
  // all_to_all: the number of elements from every member to every other one, if it is the same for
  // all pairs of the group (which then every member knows); -1 if pairs differ.
  int64_t equal_parts = -1;
};

struct Call {
  Op op = Op::all_gather;  // one that communicates
  DType dtype = DType::float32;
  ReduceOp reduce_op = ReduceOp::sum;  // avg combines like sum; the executor divides
  // Of calls that run together: those of different streams may overlap, those of one stream follow
  // one another. Numbered from 0, in the order of the plan's streams.
  int64_t stream = 0;
  std::vector<RankCall> ranks;
  std::string place;  // "redistribution 'x', step 2": for messages
};

using Deadline = std::chrono::steady_clock::time_point;

inline constexpr const char* times_fact = "times";

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual std::string name() const = 0;  // "host", "mpi", "nccl"
  // All replay ranks, and the local ones (those of this process), ascending.
  [[nodiscard]] virtual int64_t world() const = 0;
  [[nodiscard]] virtual std::vector<int32_t> local_ranks() const = 0;
  // Whether this process prints the result.
  [[nodiscard]] virtual bool is_root() const = 0;

  // Creates the communicators of one partition (disjoint groups). Every process calls it with the
  // same groups in the same order, before the first call on them. A known partition is not created
  // again.
  virtual Status prepare(const std::vector<std::vector<int32_t>>& groups, Deadline deadline) = 0;
  // As many communicators of a partition (none: of all ranks, for exchanges) as calls of different
  // streams use it at the same time, where the library needs one each for that. After `prepare`, by
  // every process in the same order.
  virtual Status prepare_copies(const std::vector<std::vector<int32_t>>& /*groups*/,
                                int64_t /*copies*/, Deadline /*deadline*/) {
    return Done{};
  }
  virtual Status run(const Call& call, Deadline deadline) = 0;
  // Runs calls of which none needs another one: in flight at once where the library can, else one
  // after the other. Every process makes the same calls in the same order.
  virtual Status run_together(const std::vector<Call>& calls, Deadline deadline);

  // Waits until what Device::run_recorded has started is done.
  virtual Status wait_for_recorded(const std::string& /*place*/, Deadline /*deadline*/) {
    return Done{};
  }

  // Barrier with a deadline; if it is missed, the error names the missing processes and `place`.
  virtual Status barrier_with_deadline(const std::string& place, Deadline deadline) = 0;
  // Barrier of the library, for timing; `place` is for messages.
  virtual Status barrier(const std::string& place, Deadline deadline) = 0;
  // All-gather of one text per process, in process order: digests, counts and messages.
  virtual Result<std::vector<std::string>> tell_all(const std::string& text, Deadline deadline) = 0;
  // After an error that other processes may not have seen: ends all processes, this one last, with
  // the exit code of the error. Returns only if there are no other processes.
  virtual void abort(const Error& error) = 0;
  // The environment, for the report: library versions compiled for and loaded, location of each
  // rank, and under `times_fact` why measured times say nothing of a real machine. Collective.
  virtual Result<std::vector<std::pair<std::string, std::string>>> describe(Deadline deadline) = 0;
};

// The outcome of what all processes do together, a Status or a Result. An error here ends them all,
// since the others may wait for this one.
template <class Outcome>
[[nodiscard]] Outcome or_abort(Communicator& communicator, Outcome outcome) {
  if (!outcome) communicator.abort(outcome.error());
  return outcome;
}

}  // namespace meshplan
