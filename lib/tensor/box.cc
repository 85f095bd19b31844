#include "tensor/box.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

// `width` cut into chunks of `chunk`: the part number `index` of it, as offsets into the width. Saturates where index * chunk would
// overflow.
Interval part(int64_t total, int64_t chunk, int64_t index) {
  int64_t lo = chunk != 0 && index > total / chunk ? total : std::min(total, index * chunk);
  return {lo, lo + std::min(chunk, total - lo)};
}

}  // namespace

int64_t volume(const Box& box) {
  int64_t elements = 1;
  for (const Interval& i : box) elements *= width(i);
  return elements;
}

Box intersect(const Box& a, const Box& b) {
  Box out(a.size());
  for (size_t d = 0; d < a.size(); ++d) {
    int64_t lo = std::max(a[d].lo, b[d].lo);
    out[d] = {lo, std::max(lo, std::min(a[d].hi, b[d].hi))};
  }
  return out;
}

std::string to_text(const Box& box) {
  std::string out = "[";
  for (size_t d = 0; d < box.size(); ++d) {
    if (d != 0) out += ", ";
    out += std::to_string(box[d].lo) + ":" + std::to_string(box[d].hi);
  }
  return out + "]";
}

Interval shard_interval(std::span<const Atom> order, int64_t extent, std::span<const int64_t> mesh_shape,
                        std::span<const int64_t> coordinates) {
  Interval held{0, extent};
  for (size_t i = 0; i < order.size();) {
    // One run: consecutive atoms of one mesh dim, each continuing the one before it.
    const auto dim = static_cast<size_t>(order[i].mesh_dim);
    int64_t product = 1;
    int64_t index = 0;
    int64_t end = order[i].before;
    bool from_major = order[i].before == 1;
    while (i < order.size() && static_cast<size_t>(order[i].mesh_dim) == dim && order[i].before == end) {
      index = index * order[i].size + atom_coordinate(order[i], mesh_shape[dim], coordinates[dim]);
      product *= order[i].size;
      end *= order[i].size;
      ++i;
    }
    int64_t w = width(held);
    int64_t chunk = from_major ? ceil_div(w, mesh_shape[dim]) * (mesh_shape[dim] / product) : ceil_div(w, product);
    Interval kept = part(w, chunk, index);
    held = {held.lo + kept.lo, held.lo + kept.hi};
  }
  return held;
}

Box box_of(const State& state, std::span<const int64_t> shape, std::span<const int64_t> mesh_shape, std::span<const int64_t> coordinates) {
  Box box(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) box[d] = shard_interval(state.shards[d], shape[d], mesh_shape, coordinates);
  return box;
}

std::vector<int64_t> largest_box(const State& state, std::span<const int64_t> shape, std::span<const int64_t> mesh_shape) {
  const std::vector<int64_t> zero(mesh_shape.size(), 0);
  std::vector<int64_t> sizes(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) sizes[d] = width(shard_interval(state.shards[d], shape[d], mesh_shape, zero));
  return sizes;
}

std::vector<int64_t> coordinates_of(int64_t index, std::span<const int64_t> mesh_shape) {
  std::vector<int64_t> coordinates(mesh_shape.size());
  for (size_t i = mesh_shape.size(); i-- > 0;) {
    coordinates[i] = index % mesh_shape[i];
    index /= mesh_shape[i];
  }
  return coordinates;
}

}  // namespace meshplan
