#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <climits>

#include "replay_mpi/mpi_parts.h"

namespace meshplan {

MPI_Datatype moved_type(int64_t bytes) {
  switch (bytes) {
    case 1:
      return MPI_UINT8_T;
    case 2:
      return MPI_UINT16_T;
    case 4:
      return MPI_UINT32_T;
    default:
      return MPI_UINT64_T;
  }
}

DType reduced_dtype(DType dtype) {
  return is_floating(dtype) && element_bytes(dtype) < 4 ? DType::float32 : dtype;
}

MPI_Datatype reduced_type(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return MPI_DOUBLE;
    case DType::int64:
      return MPI_INT64_T;
    case DType::int32:
      return MPI_INT32_T;
    case DType::int16:
      return MPI_INT16_T;
    case DType::int8:
      return MPI_INT8_T;
    case DType::uint8:
    case DType::boolean:
      return MPI_UINT8_T;
    default:
      return MPI_FLOAT;
  }
}

MPI_Op op_of(DType dtype, ReduceOp op) {
  if (dtype == DType::boolean)
    return op == ReduceOp::product || op == ReduceOp::min ? MPI_BAND : MPI_BOR;
  switch (op) {
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::product:
      return MPI_PROD;
    default:
      return MPI_SUM;
  }
}

std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<size_t>(length)};
}

Status mpi_good(int code, const std::string& place) {
  if (code == MPI_SUCCESS) return Done{};
  return environment(place + ": MPI says: " + error_text(code));
}

Status counts_fit(const Call& call, const RankCall& mine) {
  for (const auto* chunks : {&mine.sends, &mine.receives}) {
    int64_t total = 0;
    for (const Chunk& c : *chunks) {
      total = call.op == Op::exchange ? c.count : total + c.count;
      if (total <= INT_MAX) continue;
      return environment(call.place + ": " + std::to_string(total) +
                         " elements exceed the limit of one MPI call (" + std::to_string(INT_MAX) +
                         "); replay a smaller shape with --shrink");
    }
  }
  return Done{};
}

Spread spread(const std::vector<Chunk>& chunks, int64_t size) {
  Spread out;
  for (const Chunk& c : chunks) {
    if (c.count > 0 && (out.base == nullptr || c.data < out.base)) out.base = c.data;
  }
  for (const Chunk& c : chunks) {
    out.counts.push_back(static_cast<int>(c.count));
    out.starts.push_back(c.count > 0 ? static_cast<int>((c.data - out.base) / size) : 0);
  }
  return out;
}

}  // namespace meshplan
