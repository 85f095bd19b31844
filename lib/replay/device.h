// Where buffers live and local work is done: host memory, or a GPU's.
//
// Buffers come from an arena that is emptied between redistributions. Each has a guard before and behind it, and is poisoned before a step
// writes it, so that a write too many or too few shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "replay/data.h"
#include "replay/region.h"
#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

// One piece of local work of a step.
struct LocalOp {
  enum class Kind : uint8_t { copy, identity, cast, divide, combine };
  Kind kind = Kind::copy;
  DType dtype = DType::float32;       // of `to` (of both but for a cast)
  DType from_dtype = DType::float32;  // cast
  ReduceOp op = ReduceOp::sum;        // identity, combine
  const std::byte* from = nullptr;    // copy, cast, combine
  std::byte* to = nullptr;
  Region region;            // copy
  bool past_cache = false;  // copy: part of more work than caches hold
  int64_t joined = 1;       // copy: how many alike ones it stands for (join_copies); above 1 they are the region's first dim
  int64_t count = 0;        // all but copy
  int64_t divisor = 1;      // divide
};

class Device {
 public:
  static constexpr int64_t guard_bytes = 64;
  virtual ~Device() = default;

  // A buffer with a guard on both sides, aligned to 64 bytes, that the rank's work may use until `reset`.
  virtual Result<std::byte*> allocate(int32_t rank, int64_t bytes) = 0;
  virtual void reset() = 0;

  virtual Status work(int32_t rank, std::span<const LocalOp> ops) = 0;
  // Runs do(i) for i in 0..n-1, in any order, on as many threads as the device has for about `bytes` of work. The first error (by i) wins.
  virtual Status for_each(int64_t n, int64_t bytes, const std::function<Status(int64_t)>& run) = 0;

  // Waits until all work given so far is done.
  virtual Status synchronise() = 0;

  // Records what `enqueue` puts on the device, its communicator's calls included, instead of running it (a CUDA graph). False where the
  // device cannot. The recording stays until the next one or `reset`.
  virtual Result<bool> record(const std::function<Status()>& /*enqueue*/) { return false; }
  // Starts the recorded work, as one.
  virtual Status run_recorded() { return Done{}; }

  // Writes the guards on both sides of a buffer of so many bytes.
  virtual Status guard(int32_t rank, std::byte* data, int64_t bytes) = 0;
  // Writes the guards and fills the buffer with a pattern that no data has by chance.
  virtual Status poison(int32_t rank, std::byte* data, int64_t bytes) = 0;
  // False where a guard was overwritten.
  virtual Result<bool> guards_whole(int32_t rank, const std::byte* data, int64_t bytes) = 0;
  virtual Status fill(int32_t rank, std::byte* to, const Box& box, std::span<const int64_t> shape, const DataTable& table,
                      int64_t start) = 0;
  // Against the answer of the table.
  virtual Result<Comparison> compare(int32_t rank, const std::byte* found, const Box& box, std::span<const int64_t> shape,
                                     const DataTable& table, int64_t start, size_t keep) = 0;
  // A copy of part of a buffer in host memory, and back: for messages, injected faults and rare checks.
  virtual Status read(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) = 0;
  virtual Status write(int32_t rank, const std::byte* from, std::byte* to, int64_t bytes) = 0;
};

}  // namespace meshplan
