#include "replay_nccl/gpu_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "replay_nccl/gpu_launch.h"

namespace meshplan::gpu {
namespace {

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
