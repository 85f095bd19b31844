// Parts of the communicator over MPI, for its sources, which include <mpi.h> before this: what MPI
// calls dtypes and reductions, where the chunks of a call lie, and calls that are in flight
// together.
#pragma once

#include <deque>
#include <vector>

#include "replay/communicator.h"

namespace meshplan {

// An unsigned type of so many bytes, to move elements.
[[nodiscard]] MPI_Datatype moved_type(int64_t bytes);
// The dtype that a reduction runs in.
[[nodiscard]] DType reduced_dtype(DType dtype);
[[nodiscard]] MPI_Datatype reduced_type(DType dtype);
[[nodiscard]] MPI_Op op_of(DType dtype, ReduceOp op);

// What MPI says to a call at a place.
[[nodiscard]] std::string error_text(int code);
[[nodiscard]] Status mpi_good(int code, const std::string& place);

// Refuses counts beyond an int: of all chunks of a collective, of each of an exchange.
[[nodiscard]] Status counts_fit(const Call& call, const RankCall& mine);

// Counts and displacements in one buffer, for the v-collectives.
struct Spread {
  std::byte* base = nullptr;
  std::vector<int> counts;
  std::vector<int> starts;
};
[[nodiscard]] Spread spread(const std::vector<Chunk>& chunks, int64_t size);

// Calls that are started one after the other and waited for at once; then others may be started.
class StartedCalls {
 public:
  explicit StartedCalls(MPI_Comm world) : world_(world) {}
  // `comm`: of the call's group; an exchange goes over the world, under `tag`. The call and its
  // buffers stay where they are until `wait` is done.
  [[nodiscard]] Status start(const Call& call, MPI_Comm comm, int tag);
  [[nodiscard]] Status wait();

 private:
  // What MPI reads until the call is done.
  struct Started {
    const Call* call = nullptr;
    Spread from;
    Spread to;
    std::vector<std::byte> wide_from;
    std::vector<std::byte> wide_to;
  };
  Status start_exchange(const Call& call, int tag);
  Status start_reduction(Started& now, MPI_Comm comm);
  MPI_Request* request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

  MPI_Comm world_;
  std::deque<Started> calls_;
  std::deque<MPI_Request> requests_;
  std::vector<MPI_Request> waited_;
  std::string place_;  // of the first call
};

}  // namespace meshplan
