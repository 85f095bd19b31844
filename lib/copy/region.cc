#include "copy/region.h"

#include <cstring>

#include "copy/copy_past_cache.h"
#include "copy/half_lines.h"

namespace meshplan {
namespace {

std::vector<int64_t> row_major_strides(const Box& box) {
  std::vector<int64_t> strides(box.size(), 1);
  for (size_t d = box.size(); d-- > 1;) strides[d - 1] = strides[d] * width(box[d]);
  return strides;
}

// Runs of a compile-time size: a few loads and stores.
template <size_t bytes>
void copy_runs_of(const Region& region, const std::byte* from, std::byte* to, int64_t size) {
  for_each_run(region,
               [&](int64_t f, int64_t t) { std::memcpy(to + t * size, from + f * size, bytes); });
}

void copy_runs(const Region& region, const std::byte* from, std::byte* to, int64_t size) {
  const int64_t bytes = region.run * size;
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
  if (bytes >= half_line && bytes <= longest_by_half_lines && !region.dims.empty() &&
      has_half_lines()) {
    for_all_runs(region, from, to, size, [](const Runs& runs) { copy_by_half_lines(runs); });
    return;
  }
  if (bytes >= half_line) {
    for_each_run(region, [&](int64_t f, int64_t t) {
      std::memcpy(to + t * size, from + f * size, static_cast<size_t>(bytes));
    });
    return;
  }
  // Short runs: words, then bytes, are faster than a call.
  for_each_run(region, [&](int64_t f, int64_t t) {
    const std::byte* a = from + f * size;
    std::byte* b = to + t * size;
    int64_t i = 0;
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
    } else if (!region.dims.empty() &&
               region.dims.front().from_stride * region.dims.front().extent == from_strides[d] &&
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

Box full_box(std::span<const int64_t> shape) {
  Box box;
  for (int64_t extent : shape) box.push_back({0, extent});
  return box;
}

void copy_region(const Region& region, const std::byte* from, std::byte* to, int64_t element_size,
                 bool past_cache) {
  const bool worth_it =
      past_cache && !region.dims.empty() && region.run * element_size >= least_run_past_cache;
  if (worth_it && copy_past_cache(region, from, to, element_size)) return;
  copy_runs(region, from, to, element_size);
}

}  // namespace meshplan
