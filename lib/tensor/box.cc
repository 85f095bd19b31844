#include "tensor/box.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

// Chunk number `index` of [0, total) cut into chunks of size `chunk`, clamped to `total` (also if
// index * chunk would overflow).
Interval part(int64_t total, int64_t chunk, int64_t index) {
  int64_t lo = chunk != 0 && index > total / chunk ? total : std::min(total, index * chunk);
  return {lo, lo + std::min(chunk, total - lo)};
}

// Consecutive sub-axes of one mesh dim, each continuing the previous one: together they cut like a
// single dim.
struct Run {
  size_t end = 0;
  int64_t product = 1;
  bool from_major = false;
};

Run run_at(std::span<const SubAxis> order, size_t begin) {
  Run run{begin, 1, order[begin].before == 1};
  int64_t reached = order[begin].before;
  while (run.end < order.size() && order[run.end].mesh_dim == order[begin].mesh_dim &&
         order[run.end].before == reached) {
    run.product *= order[run.end].size;
    reached *= order[run.end].size;
    ++run.end;
  }
  return run;
}

// The chunk size when the run cuts `total`; the last chunks may be smaller.
int64_t chunk_of(const Run& run, int64_t dim_size, int64_t total) {
  return run.from_major ? ceil_div(total, dim_size) * (dim_size / run.product)
                        : ceil_div(total, run.product);
}

}  // namespace

int64_t volume(const Box& box) {
  int64_t elements = 1;
  for (const Interval& i : box) elements *= width(i);
  return elements;
}

void intersect(const Box& a, const Box& b, Box& both) {
  both.resize(a.size());
  for (size_t d = 0; d < a.size(); ++d) {
    const int64_t lo = std::max(a[d].lo, b[d].lo);
    both[d] = {lo, std::max(lo, std::min(a[d].hi, b[d].hi))};
  }
}

Box intersect(const Box& a, const Box& b) {
  Box both;
  intersect(a, b, both);
  return both;
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

std::string to_text(const Box& box) {
  std::string out = "[";
  for (size_t d = 0; d < box.size(); ++d) {
    if (d != 0) out += ", ";
    out += std::to_string(box[d].lo) + ":" + std::to_string(box[d].hi);
  }
  return out + "]";
}

Interval shard_interval(std::span<const SubAxis> order, int64_t extent,
                        std::span<const int64_t> mesh_shape, std::span<const int64_t> coordinates) {
  Interval held{0, extent};
  for (size_t i = 0; i < order.size();) {
    const Run run = run_at(order, i);
    const auto dim = static_cast<size_t>(order[i].mesh_dim);
    int64_t index = 0;
    for (; i < run.end; ++i)
      index =
          index * order[i].size + sub_axis_coordinate(order[i], mesh_shape[dim], coordinates[dim]);
    const Interval kept = part(width(held), chunk_of(run, mesh_shape[dim], width(held)), index);
    held = {held.lo + kept.lo, held.lo + kept.hi};
  }
  return held;
}

std::vector<Interval> shard_intervals(std::span<const SubAxis> order, int64_t extent,
                                      std::span<const int64_t> mesh_shape) {
  std::vector<Interval> all{{0, extent}};
  for (size_t i = 0; i < order.size();) {
    const Run run = run_at(order, i);
    std::vector<Interval> next;
    next.reserve(all.size() * static_cast<size_t>(run.product));
    for (const Interval& held : all) {
      const int64_t chunk = chunk_of(run, mesh_shape[order[i].mesh_dim], width(held));
      for (int64_t index = 0; index < run.product; ++index) {
        const Interval kept = part(width(held), chunk, index);
        next.push_back({held.lo + kept.lo, held.lo + kept.hi});
      }
    }
    all = std::move(next);
    i = run.end;
  }
  return all;
}

int64_t largest_shard(std::span<const SubAxis> order, int64_t extent,
                      std::span<const int64_t> mesh_shape) {
  for (size_t i = 0; i < order.size();) {
    const Run run = run_at(order, i);
    extent = std::min(extent, chunk_of(run, mesh_shape[order[i].mesh_dim], extent));
    i = run.end;
  }
  return extent;
}

Box box_of(const State& state, std::span<const int64_t> shape, std::span<const int64_t> mesh_shape,
           std::span<const int64_t> coordinates) {
  Box box(shape.size());
  for (size_t d = 0; d < shape.size(); ++d)
    box[d] = shard_interval(state.shards[d], shape[d], mesh_shape, coordinates);
  return box;
}

bool cuts_evenly(std::span<const SubAxis> order, int64_t extent,
                 std::span<const int64_t> mesh_shape) {
  for (size_t i = 0; i < order.size();) {
    const Run run = run_at(order, i);
    // A run that starts at the major end cuts where its whole mesh dim would.
    const int64_t cut_into = run.from_major ? mesh_shape[order[i].mesh_dim] : run.product;
    if (extent % cut_into != 0) return false;
    extent /= run.product;
    i = run.end;
  }
  return true;
}

std::vector<int64_t> largest_box(const State& state, std::span<const int64_t> shape,
                                 std::span<const int64_t> mesh_shape) {
  std::vector<int64_t> sizes(shape.size());
  for (size_t d = 0; d < shape.size(); ++d)
    sizes[d] = largest_shard(state.shards[d], shape[d], mesh_shape);
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
