// Copies in units of half cache lines, for machines with registers of that size (AVX).
//
// memcpy chooses a method for every run, which takes as long as copying a few hundred bytes, and
// its unaligned stores straddle cache lines. Here all runs are copied in the same way, with aligned
// stores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "copy/region.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace meshplan {

constexpr int64_t half_line = 32;  // bytes
// Longer runs use memcpy.
constexpr int64_t longest_by_half_lines = 8192;

// `count` runs of `bytes`, with strides `from_step` and `to_step` in bytes.
struct Runs {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  int64_t from_step = 0;
  int64_t to_step = 0;
  int64_t count = 1;
  int64_t bytes = 0;
};

// Calls visit(runs) for the innermost dim of a region with dims, in row-major order.
template <class Visitor>
void for_all_runs(const Region& region, const std::byte* from, std::byte* to, int64_t element_size,
                  Visitor&& visit) {
  const RegionDim& inner = region.dims.back();
  Runs runs{from,
            to,
            inner.from_stride * element_size,
            inner.to_stride * element_size,
            inner.extent,
            region.run * element_size};
  Region outer = region;
  outer.dims.pop_back();
  for_each_run(outer, [&](int64_t f, int64_t t) {
    runs.from = from + f * element_size;
    runs.to = to + t * element_size;
    visit(runs);
  });
}

[[nodiscard]] bool has_half_lines();
// Requires runs of at least half a line and has_half_lines.
void copy_by_half_lines(const Runs& runs);

#if defined(__x86_64__)

// Prefetches a line into the first-level cache, to read or to write, or into the second, which has
// more requests in flight. In assembler, since g++ 12 drops loops that only call _mm_prefetch.
// Loops over these are not unrolled: prefetches that are issued too fast are dropped.
inline void ask_for(const std::byte* at) { asm volatile("prefetcht0 (%0)" : : "r"(at)); }
inline void ask_to_write(const std::byte* at) { asm volatile("prefetchw (%0)" : : "r"(at)); }
inline void ask_for_later(const std::byte* at) { asm volatile("prefetcht1 (%0)" : : "r"(at)); }

// Copies a run of at least half a line: unaligned first and last half lines, and in between
// (possibly overlapping them) half lines aligned in the target.
__attribute__((target("avx"), always_inline)) inline void copy_run_by_half_lines(
    const std::byte* from, std::byte* to, int64_t bytes) {
  const std::byte* last = from + bytes - half_line;
  const auto skipped = half_line - static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) %
                                                        static_cast<uintptr_t>(half_line));
  const std::byte* f = from + skipped;
  std::byte* t = to + skipped;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  for (; f <= last; f += half_line, t += half_line) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(t),
                       _mm256_loadu_si256(reinterpret_cast<const __m256i*>(f)));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + bytes - half_line),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(last)));
}

#endif

}  // namespace meshplan
