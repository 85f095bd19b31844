// Boxes: the part of a tensor that a rank holds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/state.h"

namespace meshplan {

struct Interval {
  int64_t lo = 0;
  int64_t hi = 0;  // exclusive
  bool operator==(const Interval&) const = default;
};
[[nodiscard]] inline int64_t width(const Interval& i) { return i.hi - i.lo; }
// Elements that lie in both.
[[nodiscard]] inline int64_t overlap_width(const Interval& a, const Interval& b) {
  return std::max<int64_t>(0, std::min(a.hi, b.hi) - std::max(a.lo, b.lo));
}

// One interval per tensor dim; empty for a scalar, which has one element.
using Box = std::vector<Interval>;

// Elements of the box.
[[nodiscard]] int64_t volume(const Box& box);
[[nodiscard]] Box intersect(const Box& a, const Box& b);
// The same in storage that is kept.
void intersect(const Box& a, const Box& b, Box& both);
// The tensor index of element number `at` in the row-major buffer of `box`.
[[nodiscard]] std::vector<int64_t> index_at(const Box& box, int64_t at);
// "[0:4, 2:8]"
[[nodiscard]] std::string to_text(const Box& box);

// The interval of one tensor dim at the given mesh coordinates (one per mesh dim).
[[nodiscard]] Interval shard_interval(std::span<const SubAxis> order, int64_t extent,
                                      std::span<const int64_t> mesh_shape,
                                      std::span<const int64_t> coordinates);

// The intervals of one tensor dim for all coordinates on its sub-axes, the last sub-axis fastest.
// They tile [0, extent) in order.
[[nodiscard]] std::vector<Interval> shard_intervals(std::span<const SubAxis> order, int64_t extent,
                                                    std::span<const int64_t> mesh_shape);

// The box of the rank with these coordinates. An empty box lies at the end of its parent.
[[nodiscard]] Box box_of(const State& state, std::span<const int64_t> shape,
                         std::span<const int64_t> mesh_shape, std::span<const int64_t> coordinates);

// The size of the largest of these intervals, over all coordinates.
[[nodiscard]] int64_t largest_shard(std::span<const SubAxis> order, int64_t extent,
                                    std::span<const int64_t> mesh_shape);

// Whether every run of the order divides the remaining width into equal parts.
[[nodiscard]] bool cuts_evenly(std::span<const SubAxis> order, int64_t extent,
                               std::span<const int64_t> mesh_shape);

// Sizes of the largest box. It is the one at coordinate 0, since chunk sizes are rounded up and
// only the last chunks are smaller.
[[nodiscard]] std::vector<int64_t> largest_box(const State& state, std::span<const int64_t> shape,
                                               std::span<const int64_t> mesh_shape);

// Row-major coordinates of rank index `index` in a mesh of this shape.
[[nodiscard]] std::vector<int64_t> coordinates_of(int64_t index,
                                                  std::span<const int64_t> mesh_shape);

}  // namespace meshplan
