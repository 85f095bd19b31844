// Kernels on one stream with plain-data arguments: compiled by nvcc, called from C++. Dtypes are
// numbered as in tensor/dtype.h, ops as in tensor/placement.h. Every function returns a cudaError_t
// as int.
#pragma once

#include <cstdint>

namespace meshplan::gpu {

constexpr int max_dims = 12;

// A region in two buffers (copy/region.h), in bytes.
struct Walk {
  int dims = 0;
  int64_t extent[max_dims] = {};
  int64_t from_stride[max_dims] = {};  // bytes
  int64_t to_stride[max_dims] = {};
  int64_t run = 0;  // bytes in one piece
};

int copy(void* stream, const Walk& walk, const void* from, void* to);
int set_bytes(void* stream, void* to, int value, int64_t bytes);
// Every element becomes the `size` bytes at `value` (host memory).
int set_elements(void* stream, void* to, const void* value, int size, int64_t count);
int cast(void* stream, int from_dtype, const void* from, int to_dtype, void* to, int64_t count);
int divide(void* stream, int dtype, void* data, int64_t count, int64_t divisor);
int combine(void* stream, int dtype, int op, void* into, const void* with, int64_t count);

// Element i of the tensor is table[(start + i) mod period]. The walk's `from` side counts elements
// of the whole tensor, its `to` side elements of the box (strides and run in elements).
struct TableWalk {
  Walk walk;
  int64_t from_offset = 0;
  int64_t period = 1;
  int64_t start = 0;
  int size = 4;  // bytes of an element
};
int fill(void* stream, const TableWalk& walk, const void* table, void* to);
// Adds the number of different elements to counters[0] and stores the first `keep` element numbers
// that it meets behind it, in any order; counters[1] counts those.
int compare(void* stream, const TableWalk& walk, const void* table, const void* found,
            int64_t* counters, int64_t keep);

}  // namespace meshplan::gpu
