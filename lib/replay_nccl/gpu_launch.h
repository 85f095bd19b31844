// What the kernels share: how they start, and how a thread finds its place in a walk. For .cu files
// alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "replay_nccl/gpu_kernels.h"

namespace meshplan::gpu {

inline cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

// Starts a kernel whose threads share `work` turns in strides of the grid. Compiled for the host,
// tests bring their own.
#if defined(__CUDACC__)
template <class... Parameters, class... Arguments>
int launch(void (*kernel)(Parameters...), int64_t work, void* stream, Arguments... arguments) {
  constexpr int threads = 256;
  const auto blocks =
      static_cast<int>(std::clamp<int64_t>((work + threads - 1) / threads, 1, 132 * 16));
  kernel<<<blocks, threads, 0, stream_of(stream)>>>(arguments...);
  return static_cast<int>(cudaGetLastError());
}
#else
using test::launch;
#endif

// Division by a number that every thread divides by. Of 32 bits it is a multiplication and a shift,
// for numbers below 2^31 (Granlund and Montgomery, "Division by invariant integers using
// multiplication", 1994); of 64 bits the processor's own.
template <class Index>
struct Divisor;

template <>
struct Divisor<uint32_t> {
  uint32_t by = 1;
  uint32_t multiplier = 0;  // 0: by 1
  uint32_t shift = 0;
  Divisor() = default;
  explicit Divisor(int64_t n) : by(static_cast<uint32_t>(n)) {
    if (n == 1) return;
    uint32_t bits = 1;  // of n - 1
    while ((int64_t{1} << bits) < n) ++bits;
    shift = bits - 1;
    multiplier = static_cast<uint32_t>(((uint64_t{1} << (31 + bits)) + by - 1) / by);
  }
  __device__ uint32_t divide(uint32_t n) const {
    if (multiplier == 0) return n;
    return static_cast<uint32_t>((static_cast<uint64_t>(n) * multiplier) >> 32) >> shift;
  }
};

template <>
struct Divisor<uint64_t> {
  uint64_t by = 1;
  Divisor() = default;
  explicit Divisor(int64_t n) : by(static_cast<uint64_t>(n)) {}
  __device__ uint64_t divide(uint64_t n) const { return n / by; }
};

// A walk with what its numbers are divided by.
template <class Index>
struct Steps {
  Walk walk;
  Divisor<Index> extents[max_dims];
  Divisor<Index> run;  // in what is counted: vectors or elements
  explicit Steps(const Walk& of, int64_t counted) : walk(of), run(counted) {
    for (int d = 0; d < of.dims; ++d) extents[d] = Divisor<Index>(of.extent[d]);
  }
};

// Run number `rest` of a walk: where it starts on either side.
template <class Index>
__device__ void locate(const Steps<Index>& steps, Index rest, int64_t& from, int64_t& to) {
  from = 0;
  to = 0;
  for (int d = steps.walk.dims - 1; d >= 0; --d) {
    const Index next = steps.extents[d].divide(rest);
    const auto digit = static_cast<int64_t>(rest - next * steps.extents[d].by);
    from += digit * steps.walk.from_stride[d];
    to += digit * steps.walk.to_stride[d];
    rest = next;
  }
}

}  // namespace meshplan::gpu
