// A device holds buffers and does local work: host memory, or a GPU.
//
// Buffers come from an arena that is reset between redistributions. Each has guards on both sides
// and is poisoned before a step writes it, so that missing and stray writes are detected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/result.h"
#include "copy/region.h"
#include "replay/data.h"
#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

// If the boxes that a phase writes exceed this size, the next phase finds nothing in the caches.
constexpr int64_t cached_bytes = int64_t{16} << 20;

// One operation of local work in a step.
struct LocalOp {
  enum class Kind : uint8_t { copy, identity, cast, divide, combine };
  Kind kind = Kind::copy;
  DType dtype = DType::float32;       // of `to` (and of `from`, except for cast)
  DType from_dtype = DType::float32;  // cast
  ReduceOp op = ReduceOp::sum;        // identity, combine
  const std::byte* from = nullptr;    // copy, cast, combine
  std::byte* to = nullptr;
  Region region;            // copy
  bool past_cache = false;  // copy: the copies of the phase exceed the caches
  // copy: number of joined copies (join_copies); if above 1, the first dim of the region
  int64_t joined = 1;
  int64_t count = 0;    // all but copy
  int64_t divisor = 1;  // divide
};

// Bytes as they are, in one run.
[[nodiscard]] inline LocalOp copy_op(const std::byte* from, std::byte* to, int64_t bytes) {
  LocalOp op;
  op.dtype = DType::uint8;
  op.from = from;
  op.to = to;
  op.region.run = bytes;
  return op;
}
// `count` elements in another type.
[[nodiscard]] inline LocalOp cast_op(DType from_dtype, const std::byte* from, DType dtype,
                                     std::byte* to, int64_t count) {
  LocalOp op;
  op.kind = LocalOp::Kind::cast;
  op.from_dtype = from_dtype;
  op.dtype = dtype;
  op.from = from;
  op.to = to;
  op.count = count;
  return op;
}

class Device {
 public:
  static constexpr int64_t guard_bytes = 64;
  virtual ~Device() = default;

  // A buffer for the rank with guards on both sides, aligned to 64 bytes, valid until `reset`.
  virtual Result<std::byte*> allocate(int32_t rank, int64_t bytes) = 0;
  virtual void reset() = 0;

  virtual Status work(int32_t rank, std::span<const LocalOp> ops) = 0;
  // Runs do(i) for i in 0..n-1, in any order, on as many threads as the device has for about
  // `bytes` of work. The first error (by i) wins.
  virtual Status for_each(int64_t n, int64_t bytes, const std::function<Status(int64_t)>& run) = 0;

  // Waits until all submitted work is done.
  virtual Status synchronise() = 0;

  // Records the work that `enqueue` submits, including calls of the communicator, instead of
  // running it (a CUDA graph): the number of the recording, which is kept until `reset`; null if
  // not supported.
  virtual Result<std::optional<int64_t>> record(const std::function<Status()>& /*enqueue*/) {
    return std::optional<int64_t>();
  }
  // Starts the work of a recording.
  virtual Status run_recorded(int64_t /*number*/) { return Done{}; }

  // Writes the guards on both sides of a buffer of this size.
  virtual Status guard(int32_t rank, std::byte* data, int64_t bytes) = 0;
  // Writes the guards and fills the buffer with the poison pattern.
  virtual Status poison(int32_t rank, std::byte* data, int64_t bytes) = 0;
  // False if a guard was overwritten.
  virtual Result<bool> guards_whole(int32_t rank, const std::byte* data, int64_t bytes) = 0;
  virtual Status fill(int32_t rank, std::byte* to, const Box& box, std::span<const int64_t> shape,
                      const DataTable& table, int64_t start) = 0;
  // Compares with the result of the table.
  virtual Result<Comparison> compare(int32_t rank, const std::byte* found, const Box& box,
                                     std::span<const int64_t> shape, const DataTable& table,
                                     int64_t start, size_t keep) = 0;
  // Copies part of a buffer to host memory, or back: for messages, injected faults and rare checks.
  virtual Status read(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) = 0;
  virtual Status write(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) = 0;
};

}  // namespace meshplan
