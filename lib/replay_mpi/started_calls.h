// Calls of MPI that are in flight together: started one after the other, waited for at once.
#pragma once

#include <deque>
#include <vector>

#include "replay_mpi/mpi_types.h"

namespace meshplan {

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
};

}  // namespace meshplan
