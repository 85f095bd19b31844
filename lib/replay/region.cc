#include "replay/region.h"

#include <cstring>

namespace meshplan {
namespace {

std::vector<int64_t> row_major_strides(const Box& box) {
  std::vector<int64_t> strides(box.size(), 1);
  for (size_t d = box.size(); d-- > 1;) strides[d - 1] = strides[d] * width(box[d]);
  return strides;
}

template <class Element>
void copy_runs_of(const Region& region, const std::byte* from, std::byte* to) {
  const auto size = static_cast<int64_t>(sizeof(Element));
  const size_t bytes = static_cast<size_t>(region.run * size);
  if (region.run * size >= 64) {
    for_each_run(region, [&](int64_t f, int64_t t) { std::memcpy(to + t * size, from + f * size, bytes); });
    return;
  }
  // Short runs: a loop of elements beats a call.
  for_each_run(region, [&](int64_t f, int64_t t) {
    for (int64_t i = 0; i < region.run; ++i) std::memcpy(to + (t + i) * size, from + (f + i) * size, sizeof(Element));
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

void copy_region(const Region& region, const std::byte* from, std::byte* to, int64_t element_size) {
  switch (element_size) {
    case 1:
      return copy_runs_of<uint8_t>(region, from, to);
    case 2:
      return copy_runs_of<uint16_t>(region, from, to);
    case 4:
      return copy_runs_of<uint32_t>(region, from, to);
    default:
      return copy_runs_of<uint64_t>(region, from, to);
  }
}

}  // namespace meshplan
