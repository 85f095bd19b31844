#include "fake_calls.h"

#include <cstring>

#include "replay/arithmetic.h"

namespace meshplan::test {

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return DType::float64;
    case ncclFloat32:
      return DType::float32;
    case ncclFloat16:
      return DType::float16;
    case ncclBfloat16:
      return DType::bfloat16;
    case ncclInt64:
      return DType::int64;
    case ncclInt32:
      return DType::int32;
    case ncclInt8:
      return DType::int8;
    default:
      return DType::uint8;
  }
}

namespace {

ReduceOp op_of(ncclRedOp_t op) {
  switch (op) {
    case ncclProd:
      return ReduceOp::product;
    case ncclMin:
      return ReduceOp::min;
    case ncclMax:
      return ReduceOp::max;
    default:
      return ReduceOp::sum;
  }
}

}  // namespace

void compute(const std::vector<Pending>& members, const Pending& m) {
  const DType dtype = dtype_of(m.type);
  const auto size = static_cast<size_t>(element_bytes(dtype));
  const auto mine = static_cast<size_t>(m.comm->rank);
  for (const Pending& other : members) {
    const auto theirs = static_cast<size_t>(other.comm->rank);
    if (m.kind == Pending::gather) {
      std::memmove(m.to + theirs * m.count * size, other.from, m.count * size);
      continue;
    }
    if (m.kind == Pending::all_to_all) {
      std::memmove(m.to + theirs * m.count * size, other.from + mine * m.count * size, m.count * size);
      continue;
    }
    const std::byte* part = m.kind == Pending::scatter ? other.from + mine * m.count * size : other.from;
    if (&other == &members.front()) {
      std::memmove(m.to, part, m.count * size);
    } else {
      combine(dtype, op_of(m.op), m.to, part, static_cast<int64_t>(m.count));
    }
  }
}

}  // namespace meshplan::test
