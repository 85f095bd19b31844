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

// Bytes that lie `count` times, `stride` apart, with whatever is between those of one time.
struct Comb {
  const std::byte* at = nullptr;
  int64_t width = 0;
  int64_t count = 1;
  int64_t stride = 0;
};

// What a copy reads or writes. That of joined copies is a time each: their first dim.
Comb reached(const LocalOp& op, bool written) {
  const int64_t size = element_bytes(op.dtype);
  const Region& region = op.region;
  const auto stride = [&](const RegionDim& d) { return written ? d.to_stride : d.from_stride; };
  Comb comb;
  comb.at = (written ? op.to + region.to_offset * size : op.from + region.from_offset * size);
  comb.width = region.run * size;
  for (size_t d = op.joined > 1 ? 1 : 0; d < region.dims.size(); ++d)
    comb.width += (region.dims[d].extent - 1) * stride(region.dims[d]) * size;
  if (op.joined > 1) {
    comb.count = region.dims.front().extent;
    comb.stride = stride(region.dims.front()) * size;
  }
  return comb;
}

// Whether a byte of one time may be one of the comb.
bool meet(const Comb& comb, const Comb& once) {
  const int64_t from = once.at - comb.at;  // time k of the comb: [k * stride, k * stride + width)
  const int64_t to = from + once.width;
  if (comb.stride == 0) return from < comb.width && to > 0;
  if (to <= 0) return false;
  const int64_t last = std::min((to - 1) / comb.stride, comb.count - 1);  // that begins before `to`
  return last * comb.stride + comb.width > from;
}

// The threads of a GPU do joined copies at once: none may read or write what another one writes.
bool independent(const LocalOp& last, const LocalOp& next) {
  const Comb reads = reached(next, false);
  const Comb writes = reached(next, true);
  return !meet(reached(last, true), reads) && !meet(reached(last, true), writes) &&
         !meet(reached(last, false), writes);
}

}  // namespace

bool join_copies(LocalOp& last, const LocalOp& next) {
  if (last.kind != LocalOp::Kind::copy || next.kind != LocalOp::Kind::copy ||
      last.dtype != next.dtype || next.joined != 1)
    return false;
  if (!independent(last, next)) return false;
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
