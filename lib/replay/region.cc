#include "replay/region.h"

#include <algorithm>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace meshplan {
namespace {

#ifdef __SSE2__
// Runs shorter than this are not worth the care of going past the cache.
constexpr int64_t least_past_cache = 256;
constexpr int64_t line = 64;
// How many bytes ahead runs are asked for: a prefetcher does not see across the gaps between them.
constexpr int64_t ahead = 2048;

// One run, written around the cache but for the pieces of lines at its ends.
void copy_past_cache(const std::byte* from, std::byte* to, int64_t bytes, int64_t next) {
  const int64_t head = std::min(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % static_cast<uintptr_t>(line)));
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t at = head;
  for (; at + line <= bytes; at += line) {
    _mm_prefetch(reinterpret_cast<const char*>(from + next + at), _MM_HINT_T0);
    const auto* f = reinterpret_cast<const __m128i*>(from + at);
    auto* t = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(f);
    const __m128i b = _mm_loadu_si128(f + 1);
    const __m128i c = _mm_loadu_si128(f + 2);
    const __m128i d = _mm_loadu_si128(f + 3);
    _mm_stream_si128(t, a);
    _mm_stream_si128(t + 1, b);
    _mm_stream_si128(t + 2, c);
    _mm_stream_si128(t + 3, d);
  }
  std::memcpy(to + at, from + at, static_cast<size_t>(bytes - at));
}

void copy_region_past_cache(const Region& region, const std::byte* from, std::byte* to, int64_t size) {
  const int64_t bytes = region.run * size;
  const int64_t next = std::max<int64_t>(1, ahead / bytes) * region.dims.back().from_stride * size;
  for_each_run(region, [&](int64_t f, int64_t t) { copy_past_cache(from + f * size, to + t * size, bytes, next); });
  _mm_sfence();
}
#endif

std::vector<int64_t> row_major_strides(const Box& box) {
  std::vector<int64_t> strides(box.size(), 1);
  for (size_t d = box.size(); d-- > 1;) strides[d - 1] = strides[d] * width(box[d]);
  return strides;
}

// Runs of a size that the compiler knows: a few loads and stores.
template <size_t bytes>
void copy_runs_of(const Region& region, const std::byte* from, std::byte* to, int64_t size) {
  for_each_run(region, [&](int64_t f, int64_t t) { std::memcpy(to + t * size, from + f * size, bytes); });
}

void copy_runs(const Region& region, const std::byte* from, std::byte* to, int64_t size) {
  const auto bytes = static_cast<size_t>(region.run * size);
  switch (bytes) {
    case 1:
      return copy_runs_of<1>(region, from, to, size);
    case 2:
      return copy_runs_of<2>(region, from, to, size);
    case 4:
      return copy_runs_of<4>(region, from, to, size);
    case 8:
      return copy_runs_of<8>(region, from, to, size);
    case 16:
      return copy_runs_of<16>(region, from, to, size);
    case 32:
      return copy_runs_of<32>(region, from, to, size);
    case 64:
      return copy_runs_of<64>(region, from, to, size);
    case 128:
      return copy_runs_of<128>(region, from, to, size);
    default:
      break;
  }
  if (bytes >= 32) {
    for_each_run(region, [&](int64_t f, int64_t t) { std::memcpy(to + t * size, from + f * size, bytes); });
    return;
  }
  // Short runs: whole words, then bytes, beat a call.
  for_each_run(region, [&](int64_t f, int64_t t) {
    const std::byte* a = from + f * size;
    std::byte* b = to + t * size;
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8) std::memcpy(b + i, a + i, 8);
    for (; i + 2 <= bytes; i += 2) std::memcpy(b + i, a + i, 2);
    if (i < bytes) b[i] = a[i];
  });
}

}  // namespace

Region make_region(const Box& part, const Box& from, const Box& to) {
  Region region;
  if (volume(part) == 0) return region;
  const std::vector<int64_t> from_strides = row_major_strides(from);
  const std::vector<int64_t> to_strides = row_major_strides(to);
  region.run = 1;
  for (size_t d = part.size(); d-- > 0;) {
    region.from_offset += (part[d].lo - from[d].lo) * from_strides[d];
    region.to_offset += (part[d].lo - to[d].lo) * to_strides[d];
    const int64_t extent = width(part[d]);
    if (extent == 1) continue;
    if (region.dims.empty() && from_strides[d] == region.run && to_strides[d] == region.run) {
      region.run *= extent;
    } else if (!region.dims.empty() && region.dims.front().from_stride * region.dims.front().extent == from_strides[d] &&
               region.dims.front().to_stride * region.dims.front().extent == to_strides[d]) {
      region.dims.front().extent *= extent;
    } else {
      region.dims.insert(region.dims.begin(), {extent, from_strides[d], to_strides[d]});
    }
  }
  return region;
}

int64_t elements(const Region& region) {
  int64_t count = region.run;
  for (const RegionDim& dim : region.dims) count *= dim.extent;
  return count;
}

std::optional<int64_t> contiguous_offset(const Box& part, const Box& box) {
  Region region = make_region(part, box, part);
  if (region.run != volume(part)) return std::nullopt;
  return region.from_offset;
}

int64_t offset_in(const Box& part, const Box& box) {
  const std::vector<int64_t> strides = row_major_strides(box);
  int64_t offset = 0;
  for (size_t d = 0; d < part.size(); ++d) offset += (part[d].lo - box[d].lo) * strides[d];
  return offset;
}

std::vector<int64_t> index_at(const Box& box, int64_t at) {
  std::vector<int64_t> index(box.size());
  for (size_t d = box.size(); d-- > 0;) {
    const int64_t w = width(box[d]);
    index[d] = box[d].lo + (w == 0 ? 0 : at % w);
    at = w == 0 ? 0 : at / w;
  }
  return index;
}

Box full_box(std::span<const int64_t> shape) {
  Box box;
  for (int64_t extent : shape) box.push_back({0, extent});
  return box;
}

void copy_region(const Region& region, const std::byte* from, std::byte* to, int64_t element_size, [[maybe_unused]] bool past_cache) {
#ifdef __SSE2__
  if (past_cache && region.run * element_size >= least_past_cache && !region.dims.empty()) {
    return copy_region_past_cache(region, from, to, element_size);
  }
#endif
  copy_runs(region, from, to, element_size);
}

}  // namespace meshplan
