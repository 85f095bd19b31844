// A part of a row-major box in memory, and its place in another box.
//
//     outer box [0:4, 0:8] stored row-major   region [1:3, 2:6]: 2 runs of 4, stride 8, from 10
//
// Packing, unpacking, filling and checking all iterate over the runs that are contiguous in both
// buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/box.h"

namespace meshplan {

struct RegionDim {
  int64_t extent = 1;
  int64_t from_stride = 0;  // elements
  int64_t to_stride = 0;
  bool operator==(const RegionDim&) const = default;
};

// Runs of `run` consecutive elements, repeated over `dims` (outermost first), from one buffer to
// another.
struct Region {
  std::vector<RegionDim> dims;  // dims that are contiguous in both buffers are fused
  int64_t run = 0;              // consecutive elements in both buffers; 0: empty
  int64_t from_offset = 0;
  int64_t to_offset = 0;
  bool operator==(const Region&) const = default;
};

// The copy of `part` from a row-major buffer of box `from` to one of box `to`. `part` is inside
// both. Law: it visits every element of `part` once, in row-major order.
[[nodiscard]] Region make_region(const Box& part, const Box& from, const Box& to);
[[nodiscard]] int64_t elements(const Region& region);
// The offset of `part` in the row-major buffer of `box`, if it is contiguous there.
[[nodiscard]] std::optional<int64_t> contiguous_offset(const Box& part, const Box& box);
// The offset of the first element of `part` in the row-major buffer of `box`.
[[nodiscard]] int64_t offset_in(const Box& part, const Box& box);
// The whole tensor.
[[nodiscard]] Box full_box(std::span<const int64_t> shape);

// Calls visit(from_offset, to_offset) for every run, in row-major order.
template <class Visitor>
void for_each_run(const Region& region, Visitor&& visit) {
  if (region.run == 0) return;
  const size_t depth = region.dims.size();
  if (depth == 0) {
    visit(region.from_offset, region.to_offset);
    return;
  }
  // The innermost strided dim is the inner loop; the others count like an odometer.
  const RegionDim& inner = region.dims[depth - 1];
  std::vector<int64_t> digits(depth - 1, 0);
  int64_t from = region.from_offset;
  int64_t to = region.to_offset;
  while (true) {
    int64_t f = from;
    int64_t t = to;
    for (int64_t i = 0; i < inner.extent; ++i, f += inner.from_stride, t += inner.to_stride)
      visit(f, t);
    size_t d = depth - 1;
    while (d-- > 0) {
      const RegionDim& dim = region.dims[d];
      from += dim.from_stride;
      to += dim.to_stride;
      if (++digits[d] < dim.extent) break;
      from -= dim.extent * dim.from_stride;
      to -= dim.extent * dim.to_stride;
      digits[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

// Copies a region with elements of `element_size` bytes. The buffers do not overlap. `past_cache`:
// the total work exceeds the caches, so stores bypass them and loads are prefetched.
void copy_region(const Region& region, const std::byte* from, std::byte* to, int64_t element_size,
                 bool past_cache = false);

}  // namespace meshplan
