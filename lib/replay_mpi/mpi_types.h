// What MPI calls the dtypes and reductions of plans, and where the chunks of a call lie.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

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

}  // namespace meshplan
