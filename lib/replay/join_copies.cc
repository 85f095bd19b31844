#include "replay/join_copies.h"

#include <algorithm>

namespace meshplan {
namespace {

// Limit of dims for joined copies (replay_nccl/gpu_kernels.h supports 12).
constexpr size_t most_dims = 10;

// Distance in elements between two addresses; nullopt if not a multiple of the element size.
std::optional<int64_t> distance(const std::byte* from, const std::byte* to, int64_t size) {
  const int64_t bytes = to - from;
  if (bytes % size != 0) return std::nullopt;
  return bytes / size;
}

}  // namespace

bool join_copies(LocalOp& last, const LocalOp& next) {
  if (last.kind != LocalOp::Kind::copy || next.kind != LocalOp::Kind::copy ||
      last.dtype != next.dtype || next.joined != 1)
    return false;
  const int64_t size = element_bytes(last.dtype);
  Region& region = last.region;
  const auto from = distance(last.from + region.from_offset * size,
                             next.from + next.region.from_offset * size, size);
  const auto to =
      distance(last.to + region.to_offset * size, next.to + next.region.to_offset * size, size);
  if (!from || !to) return false;
  if (region.dims.empty() && next.region.dims.empty() && *from == region.run && *to == region.run) {
    region.run += next.region.run;
    return true;
  }
  if (region.run != next.region.run) return false;
  if (last.joined == 1) {
    if (region.dims != next.region.dims || region.dims.size() >= most_dims || *to <= 0 || *from < 0)
      return false;
    region.dims.insert(region.dims.begin(), {2, *from, *to});
    last.joined = 2;
    return true;
  }
  const RegionDim& first = region.dims.front();
  if (*from != first.extent * first.from_stride || *to != first.extent * first.to_stride)
    return false;
  if (!std::equal(region.dims.begin() + 1, region.dims.end(), next.region.dims.begin(),
                  next.region.dims.end()))
    return false;
  ++region.dims.front().extent;
  ++last.joined;
  return true;
}

void read_in_order(LocalOp& copy) {
  std::stable_sort(
      copy.region.dims.begin(), copy.region.dims.end(),
      [](const RegionDim& a, const RegionDim& b) { return a.from_stride > b.from_stride; });
}

}  // namespace meshplan
