#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "base/check.h"
#include "replay/arithmetic.h"
#include "replay_mpi/mpi_parts.h"

namespace meshplan {

Status StartedCalls::start(const Call& call, MPI_Comm comm, int tag) {
  const RankCall& mine = call.ranks.front();
  if (auto fits = counts_fit(call, mine); !fits) return fits;
  if (place_.empty()) place_ = call.place;
  if (call.op == Op::exchange) return start_exchange(call, tag);
  Started& now = calls_.emplace_back();
  now.call = &call;
  const int64_t size = element_bytes(call.dtype);
  MPI_Datatype type = moved_type(size);
  if (row_of(call.op).reduces) return start_reduction(now, comm);
  now.to = spread(mine.receives, size);
  if (call.op == Op::all_gather) {
    const Chunk& from = mine.sends.front();
    return mpi_good(
        MPI_Iallgatherv(from.data, static_cast<int>(from.count), type, now.to.base,
                        now.to.counts.data(), now.to.starts.data(), type, comm, request()),
        call.place);
  }
  MESHPLAN_CHECK(call.op == Op::all_to_all, "no call of groups for an op without groups");
  now.from = spread(mine.sends, size);
  return mpi_good(MPI_Ialltoallv(now.from.base, now.from.counts.data(), now.from.starts.data(),
                                 type, now.to.base, now.to.counts.data(), now.to.starts.data(),
                                 type, comm, request()),
                  call.place);
}

Status StartedCalls::start_exchange(const Call& call, int tag) {
  const RankCall& mine = call.ranks.front();
  MPI_Datatype type = moved_type(element_bytes(call.dtype));
  for (const Chunk& c : mine.receives) {
    if (auto done = mpi_good(
            MPI_Irecv(c.data, static_cast<int>(c.count), type, c.peer, tag, world_, request()),
            call.place);
        !done)
      return done;
  }
  for (const Chunk& c : mine.sends) {
    if (auto done = mpi_good(
            MPI_Isend(c.data, static_cast<int>(c.count), type, c.peer, tag, world_, request()),
            call.place);
        !done)
      return done;
  }
  return Done{};
}

Status StartedCalls::start_reduction(Started& now, MPI_Comm comm) {
  const Call& call = *now.call;
  const RankCall& mine = call.ranks.front();
  const DType wide = reduced_dtype(call.dtype);
  const Chunk& to = mine.receives.front();
  int64_t total = 0;
  for (const Chunk& c : mine.sends) {
    now.from.counts.push_back(static_cast<int>(c.count));
    total += c.count;
  }
  // Chunks are contiguous (replay/communicator.h), so the first is the start of the buffer.
  const std::byte* from = mine.sends.front().data;
  std::byte* into = to.data;
  if (wide != call.dtype) {
    const int64_t bytes = element_bytes(wide);
    now.wide_from.resize(static_cast<size_t>(total * bytes));
    now.wide_to.resize(static_cast<size_t>(to.count * bytes));
    cast_elements(call.dtype, from, wide, now.wide_from.data(), total);
    from = now.wide_from.data();
    into = now.wide_to.data();
  }
  MPI_Datatype type = reduced_type(wide);
  MPI_Op op = op_of(call.dtype, call.reduce_op);
  if (call.op == Op::all_reduce) {
    return mpi_good(
        MPI_Iallreduce(from, into, static_cast<int>(to.count), type, op, comm, request()),
        call.place);
  }
  return mpi_good(
      MPI_Ireduce_scatter(from, into, now.from.counts.data(), type, op, comm, request()),
      call.place);
}

Status StartedCalls::wait() {
  waited_.assign(requests_.begin(), requests_.end());
  if (auto done = mpi_good(
          MPI_Waitall(static_cast<int>(waited_.size()), waited_.data(), MPI_STATUSES_IGNORE),
          place_);
      !done)
    return done;
  for (const Started& now : calls_) {
    const Chunk& to = now.call->ranks.front().receives.front();
    if (!now.wide_to.empty()) {
      cast_elements(reduced_dtype(now.call->dtype), now.wide_to.data(), now.call->dtype, to.data,
                    to.count);
    }
  }
  calls_.clear();
  requests_.clear();
  place_.clear();
  return Done{};
}

}  // namespace meshplan
