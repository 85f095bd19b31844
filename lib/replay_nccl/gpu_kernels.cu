#include "replay_nccl/gpu_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

namespace meshplan::gpu {
namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

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

// Two ways to share a copy, each the faster somewhere (an H200; testdata/results/nccl.txt has the
// numbers). In both a thread has several vectors on their way: all are read before one is written.

// Neighbouring threads copy neighbouring vectors, across the ends of runs, so that none is idle
// whatever the length of a run.
template <class Vector>
constexpr uint32_t across_at_once = sizeof(Vector) <= 4 ? 8 : 4;

template <class Vector, class Index>
__global__ void copy_across_runs(Steps<Index> steps, const char* from, char* to, Index all) {
  constexpr uint32_t several = across_at_once<Vector>;
  const Index stride = static_cast<Index>(gridDim.x) * blockDim.x * several;
  for (Index first = blockIdx.x * static_cast<Index>(blockDim.x) * several + threadIdx.x;
       first < all; first += stride) {
    Vector held[several] = {};
    int64_t targets[several];
    for (uint32_t k = 0; k < several; ++k) {
      const Index i = first + k * blockDim.x;
      if (i >= all) break;
      const Index run = steps.run.divide(i);
      const auto within =
          static_cast<int64_t>(i - run * steps.run.by) * static_cast<int64_t>(sizeof(Vector));
      int64_t source = 0;
      locate<Index>(steps, run, source, targets[k]);
      targets[k] += within;
      held[k] = *reinterpret_cast<const Vector*>(from + source + within);
    }
    for (uint32_t k = 0; k < several; ++k) {
      if (first + k * blockDim.x >= all) break;
      *reinterpret_cast<Vector*>(to + targets[k]) = held[k];
    }
  }
}

// Each run by 32 neighbouring threads: of what is written into gaps its sectors of 32 bytes, which
// two vectors share where runs begin between them, are then written at nearly one time.
constexpr uint32_t lanes = 32;
constexpr uint32_t run_at_once = 4;

template <class Vector, class Index>
__global__ void copy_run_by_run(Steps<Index> steps, const char* from, char* to, Index pieces,
                                Index all) {
  const Index thread = blockIdx.x * static_cast<Index>(blockDim.x) + threadIdx.x;
  const Index teams = static_cast<Index>(gridDim.x) * blockDim.x / lanes;
  for (Index piece = thread / lanes; piece < all; piece += teams) {
    const Index run = piece / pieces;
    int64_t f = 0;
    int64_t t = 0;
    locate<Index>(steps, run, f, t);
    const Index first = (piece - run * pieces) * lanes * run_at_once + thread % lanes;
    const auto* source = reinterpret_cast<const Vector*>(from + f);
    auto* target = reinterpret_cast<Vector*>(to + t);
    Vector held[run_at_once] = {};
    for (uint32_t k = 0; k < run_at_once; ++k) {
      const Index i = first + k * lanes;
      if (i < steps.run.by) held[k] = source[i];
    }
    for (uint32_t k = 0; k < run_at_once; ++k) {
      const Index i = first + k * lanes;
      if (i < steps.run.by) target[i] = held[k];
    }
  }
}

template <class Vector, class Index>
int copy_vectors(void* stream, const Walk& walk, const void* from, void* to, int64_t all) {
  const int64_t vectors = walk.run / static_cast<int64_t>(sizeof(Vector));  // of a run
  const Steps<Index> steps(walk, vectors);
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  const bool into_gaps = walk.to_stride[walk.dims - 1] != walk.run;
  if (sizeof(Vector) == 16 || !into_gaps || vectors < lanes)
    return launch(copy_across_runs<Vector, Index>, all / across_at_once<Vector> + 1, stream, steps,
                  source, target, static_cast<Index>(all));
  const int64_t pieces = (vectors + lanes * run_at_once - 1) / (lanes * run_at_once);
  const int64_t of_all = all / vectors * pieces;
  return launch(copy_run_by_run<Vector, Index>, of_all * lanes, stream, steps, source, target,
                static_cast<Index>(pieces), static_cast<Index>(of_all));
}

template <class Vector>
int copy_as(void* stream, const Walk& walk, const void* from, void* to, int64_t runs) {
  // 32 bits are faster, where no number comes near their end.
  const int64_t all = runs * (walk.run / static_cast<int64_t>(sizeof(Vector)));
  return all < (int64_t{1} << 30) ? copy_vectors<Vector, uint32_t>(stream, walk, from, to, all)
                                  : copy_vectors<Vector, uint64_t>(stream, walk, from, to, all);
}

// Arithmetic goes through double for floats (one rounding: exact for + and * of two values of any
// narrower float) and through int64 for integers.
enum DTypeCode { f64, f32, bf16, f16, e4m3, e5m2, i64, i32, i16, i8, u8, boolean };
enum OpCode { sum, avg, minimum, maximum, product };

__device__ bool is_float(int dtype) { return dtype <= e5m2; }

__device__ double load_float(int dtype, const void* data, int64_t i) {
  switch (dtype) {
    case f64: return static_cast<const double*>(data)[i];
    case f32: return static_cast<const float*>(data)[i];
    case bf16: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case f16: return __half2float(static_cast<const __half*>(data)[i]);
    case e4m3: return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
    default: return static_cast<float>(static_cast<const __nv_fp8_e5m2*>(data)[i]);
  }
}

__device__ void store_float(int dtype, void* data, int64_t i, double value) {
  switch (dtype) {
    case f64: static_cast<double*>(data)[i] = value; break;
    case f32: static_cast<float*>(data)[i] = static_cast<float>(value); break;
    case bf16: static_cast<__nv_bfloat16*>(data)[i] = __double2bfloat16(value); break;
    case f16: static_cast<__half*>(data)[i] = __double2half(value); break;
    case e4m3: static_cast<__nv_fp8_e4m3*>(data)[i] = __nv_fp8_e4m3(value); break;
    default: static_cast<__nv_fp8_e5m2*>(data)[i] = __nv_fp8_e5m2(value); break;
  }
}

__device__ int64_t load_integer(int dtype, const void* data, int64_t i) {
  switch (dtype) {
    case i64: return static_cast<const int64_t*>(data)[i];
    case i32: return static_cast<const int32_t*>(data)[i];
    case i16: return static_cast<const int16_t*>(data)[i];
    case i8: return static_cast<const int8_t*>(data)[i];
    default: return static_cast<const uint8_t*>(data)[i];
  }
}

__device__ void store_integer(int dtype, void* data, int64_t i, int64_t value) {
  switch (dtype) {
    case i64: static_cast<int64_t*>(data)[i] = value; break;
    case i32: static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value); break;
    case i16: static_cast<int16_t*>(data)[i] = static_cast<int16_t>(value); break;
    case i8: static_cast<int8_t*>(data)[i] = static_cast<int8_t>(value); break;
    default: static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value); break;
  }
}

template <class Value>
__device__ Value combined(int op, Value a, Value b) {
  switch (op) {
    case minimum: return b < a ? b : a;
    case maximum: return a < b ? b : a;
    case product: return a * b;
    default: return a + b;
  }
}

__global__ void combine_kernel(int dtype, int op, void* into, const void* with, int64_t count) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    if (dtype == boolean) {
      const bool both = op == product || op == minimum;
      const int64_t a = load_integer(dtype, into, i);
      const int64_t b = load_integer(dtype, with, i);
      store_integer(dtype, into, i, both ? (a & b) : (a | b));
    } else if (is_float(dtype)) {
      store_float(dtype, into, i,
                  combined(op, load_float(dtype, into, i), load_float(dtype, with, i)));
    } else {
      // Wraps like the stored type.
      const auto a = load_integer(dtype, into, i);
      const auto b = load_integer(dtype, with, i);
      if (op == minimum || op == maximum) {
        store_integer(dtype, into, i, combined(op, a, b));
      } else {
        store_integer(
            dtype, into, i,
            static_cast<int64_t>(combined(op, static_cast<uint64_t>(a), static_cast<uint64_t>(b))));
      }
    }
  }
}

__global__ void divide_kernel(int dtype, void* data, int64_t count, int64_t divisor) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    if (dtype == boolean) continue;
    if (is_float(dtype)) {
      store_float(dtype, data, i, load_float(dtype, data, i) / static_cast<double>(divisor));
    } else {
      store_integer(dtype, data, i, load_integer(dtype, data, i) / divisor);
    }
  }
}

__global__ void cast_kernel(int from_dtype, const void* from, int to_dtype, void* to,
                            int64_t count) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    if (is_float(from_dtype)) {
      const double value = load_float(from_dtype, from, i);
      if (is_float(to_dtype)) {
        store_float(to_dtype, to, i, value);
      } else {
        store_integer(to_dtype, to, i,
                      to_dtype == boolean ? value != 0 : static_cast<int64_t>(value));
      }
    } else {
      const int64_t value = load_integer(from_dtype, from, i);
      if (is_float(to_dtype)) {
        store_float(to_dtype, to, i, static_cast<double>(value));
      } else {
        store_integer(to_dtype, to, i, to_dtype == boolean ? value != 0 : value);
      }
    }
  }
}

struct Pattern {
  unsigned char bytes[8];
};

__global__ void set_kernel(char* to, Pattern pattern, int size, int64_t count) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    for (int b = 0; b < size; ++b) to[i * size + b] = static_cast<char>(pattern.bytes[b]);
  }
}

// The element of the table and of the box for turn i.
__device__ void locate_element(const TableWalk& w, const Steps<uint64_t>& steps, int64_t i,
                               int64_t& position, int64_t& element) {
  const auto run = static_cast<int64_t>(steps.run.divide(static_cast<uint64_t>(i)));
  const int64_t within = i - run * w.walk.run;
  int64_t tensor = 0;
  int64_t box = 0;
  locate<uint64_t>(steps, static_cast<uint64_t>(run), tensor, box);
  position = (w.start + (w.from_offset + tensor + within) % w.period) % w.period;
  element = box + within;
}

template <class Element>
__global__ void fill_kernel(TableWalk w, Steps<uint64_t> steps, const Element* table, Element* to,
                            int64_t total) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < total;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    int64_t position = 0;
    int64_t element = 0;
    locate_element(w, steps, i, position, element);
    to[element] = table[position];
  }
}

template <class Element>
__global__ void compare_kernel(TableWalk w, Steps<uint64_t> steps, const Element* table,
                               const Element* found, int64_t total, unsigned long long* counters,
                               int64_t keep) {
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < total;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    int64_t position = 0;
    int64_t element = 0;
    locate_element(w, steps, i, position, element);
    if (found[element] == table[position]) continue;
    atomicAdd(&counters[0], 1ULL);
    const unsigned long long at = atomicAdd(&counters[1], 1ULL);
    if (at < static_cast<unsigned long long>(keep))
      counters[2 + at] = static_cast<unsigned long long>(element);
  }
}

int64_t turns(const Walk& walk) {
  int64_t n = walk.run;
  for (int d = 0; d < walk.dims; ++d) n *= walk.extent[d];
  return n;
}

// What start says, asked with a null pointer to the unsigned type of that many bytes.
template <class Start>
int for_size(int size, Start start) {
  switch (size) {
    case 1: return start(static_cast<const uint8_t*>(nullptr));
    case 2: return start(static_cast<const uint16_t*>(nullptr));
    case 4: return start(static_cast<const uint32_t*>(nullptr));
    default: return start(static_cast<const uint64_t*>(nullptr));
  }
}

}  // namespace

int copy(void* stream, const Walk& walk, const void* from, void* to) {
  int64_t runs = 1;
  auto odd = static_cast<uint64_t>(walk.run) | reinterpret_cast<uint64_t>(from) |
             reinterpret_cast<uint64_t>(to);
  for (int d = 0; d < walk.dims; ++d) {
    runs *= walk.extent[d];
    odd |= static_cast<uint64_t>(walk.from_stride[d]) | static_cast<uint64_t>(walk.to_stride[d]);
  }
  if (runs == 0 || walk.run == 0) return 0;
  if (walk.dims == 0)
    return static_cast<int>(cudaMemcpyAsync(to, from, static_cast<size_t>(walk.run),
                                            cudaMemcpyDeviceToDevice, stream_of(stream)));
  // The widest vector that divides every address.
  if (odd % 16 == 0) return copy_as<uint4>(stream, walk, from, to, runs);
  if (odd % 8 == 0) return copy_as<uint2>(stream, walk, from, to, runs);
  if (odd % 4 == 0) return copy_as<uint32_t>(stream, walk, from, to, runs);
  if (odd % 2 == 0) return copy_as<uint16_t>(stream, walk, from, to, runs);
  return copy_as<uint8_t>(stream, walk, from, to, runs);
}

int set_bytes(void* stream, void* to, int value, int64_t bytes) {
  return static_cast<int>(
      cudaMemsetAsync(to, value, static_cast<size_t>(bytes), stream_of(stream)));
}

int set_elements(void* stream, void* to, const void* value, int size, int64_t count) {
  if (count == 0) return 0;
  Pattern pattern{};
  for (int b = 0; b < size; ++b) pattern.bytes[b] = static_cast<const unsigned char*>(value)[b];
  return launch(set_kernel, count, stream, static_cast<char*>(to), pattern, size, count);
}

int cast(void* stream, int from_dtype, const void* from, int to_dtype, void* to, int64_t count) {
  if (count == 0) return 0;
  return launch(cast_kernel, count, stream, from_dtype, from, to_dtype, to, count);
}

int divide(void* stream, int dtype, void* data, int64_t count, int64_t divisor) {
  if (count == 0) return 0;
  return launch(divide_kernel, count, stream, dtype, data, count, divisor);
}

int combine(void* stream, int dtype, int op, void* into, const void* with, int64_t count) {
  if (count == 0) return 0;
  return launch(combine_kernel, count, stream, dtype, op, into, with, count);
}

int fill(void* stream, const TableWalk& walk, const void* table, void* to) {
  const int64_t total = turns(walk.walk);
  if (total == 0) return 0;
  const Steps<uint64_t> steps(walk.walk, walk.walk.run);
  return for_size(walk.size, [&](auto* kind) {
    using Element = std::remove_const_t<std::remove_pointer_t<decltype(kind)>>;
    return launch(fill_kernel<Element>, total, stream, walk, steps,
                  static_cast<const Element*>(table), static_cast<Element*>(to), total);
  });
}

int compare(void* stream, const TableWalk& walk, const void* table, const void* found,
            int64_t* counters, int64_t keep) {
  const int64_t total = turns(walk.walk);
  if (total == 0) return 0;
  const Steps<uint64_t> steps(walk.walk, walk.walk.run);
  return for_size(walk.size, [&](auto* kind) {
    using Element = std::remove_const_t<std::remove_pointer_t<decltype(kind)>>;
    return launch(compare_kernel<Element>, total, stream, walk, steps,
                  static_cast<const Element*>(table), static_cast<const Element*>(found), total,
                  reinterpret_cast<unsigned long long*>(counters), keep);
  });
}

}  // namespace meshplan::gpu
