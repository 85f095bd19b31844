// The ranks that take part in a redistribution, in rank order, and the boxes they hold and want, by
// number.
//
//     mesh a 2 x b 2, [8], S(0)P(sum) -> RS(0)
//
//     rank          0 1 2 3
//     held box      0 0 1 1     [0:4] [4:8]
//     contribution  0 1 0 1     which part of a pending sum
//     wanted box    0 1 0 1     [0:4] [4:8]
//
// The boxes of one state tile the tensor: two of them are the same box or share nothing. So what a
// set of ranks holds or wants is a set of numbers, and what the boxes of two sets share is a sum
// over pairs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mesh/mesh.h"
#include "tensor/box.h"

namespace meshplan {

// The boxes of one state. Number 0 starts every tensor dim; numbers count the last tensor dim
// fastest.
class BoxGrid {
 public:
  BoxGrid(const State& state, std::span<const int64_t> shape, std::span<const int64_t> mesh_shape);

  [[nodiscard]] size_t dims() const { return sides_.size(); }
  [[nodiscard]] int64_t count() const { return count_; }
  // The shard of a tensor dim that the box has.
  [[nodiscard]] size_t shard(size_t dim, int32_t box) const {
    return static_cast<size_t>(box / step_[dim]) % sides_[dim].size();
  }
  [[nodiscard]] const Interval& side(size_t dim, size_t shard) const { return sides_[dim][shard]; }
  [[nodiscard]] const std::vector<Interval>& sides(size_t dim) const { return sides_[dim]; }
  // The box, a side for each tensor dim.
  [[nodiscard]] std::span<const Interval> box(int32_t box) const {
    return std::span(boxes_).subspan(static_cast<size_t>(box) * dims(), dims());
  }
  [[nodiscard]] int64_t volume(int32_t box) const { return volumes_[box]; }
  [[nodiscard]] const std::vector<int64_t>& mesh_sizes() const { return mesh_sizes_; }
  // The box of every rank of the mesh, row-major.
  [[nodiscard]] const std::vector<int32_t>& of_ranks() const { return of_ranks_; }

 private:
  std::vector<int64_t> mesh_sizes_;
  std::vector<int32_t> of_ranks_;
  std::vector<int64_t> volumes_;              // by box
  std::vector<std::vector<Interval>> sides_;  // per tensor dim, by shard
  std::vector<int64_t> step_;
  std::vector<Interval> boxes_;  // by box, the sides next to each other
  int64_t count_ = 1;
};

// Elements that two boxes share.
[[nodiscard]] int64_t shared_elements(const BoxGrid& a, int32_t box_a, const BoxGrid& b,
                                      int32_t box_b);
// Elements that boxes of the first list share with boxes of the second; at least that many where
// the lists are too long for all their pairs: the second is then taken for the product of its
// shards in each dim, which it is on units that cut the mesh dims evenly.
[[nodiscard]] int64_t shared_elements(const BoxGrid& a, std::span<const int32_t> boxes_a,
                                      const BoxGrid& b, std::span<const int32_t> boxes_b);

struct RankBoxes {
  int64_t id = 0;            // global rank
  int32_t held = -1;         // box of the source; -1: not on the source's mesh
  int32_t contribution = 0;  // coordinates on what is pending in the source, as one number
  int32_t wanted = -1;       // box of the target; -1: not on the target's mesh
  int32_t cell = -1;  // ranks of the target whose contributions together are the value have one
};

struct Participants {
  BoxGrid held;
  BoxGrid wanted;
  int64_t contributions = 1;  // of every element
  int64_t holders = 1;        // ranks that hold one contribution to one box
  int64_t cell_ranks = 1;     // ranks of one cell
  int64_t cells = 1;          // that want one box
  std::vector<RankBoxes> ranks{};
};

// Of one copy of both meshes. O(ranks * mesh dims), and a sort where the rank map is out of order.
[[nodiscard]] Participants list_participants(const Mesh& src_mesh, const Mesh& dst_mesh,
                                             int64_t copy, std::span<const int64_t> shape,
                                             const State& src, const State& dst);

}  // namespace meshplan
