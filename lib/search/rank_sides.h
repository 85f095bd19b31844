// What some ranks of a problem have along its tensor dims, by the list of sub-axes that shards one:
// there are few lists and many states, so it is worked out once a list.
//
//     ranks 0 1 2 3 = coordinates 00 01 10 11 on sub-axes 0 1, [6, ...]
//     list {1} of dim 0     sides [0:3] [3:6] [0:3] [3:6]     numbers 0 1 0 1
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "search/search_state_bytes.h"
#include "tensor/box.h"

namespace meshplan {

struct PlanProblem;

class RankSides {
 public:
  // By rank.
  struct Sides {
    std::vector<Interval> side;
    std::vector<int64_t> number;  // of `numbers`: the coordinates on the list as one
    int64_t numbers = 1;
    int64_t widest = 0;            // side of any rank of the mesh: that of coordinates 0
    std::vector<Interval> joined;  // what the ranks have together, ascending and apart
  };

  RankSides() = default;
  // Coordinates on every sub-axis of the problem, rank-major.
  RankSides(std::vector<int32_t> coordinates, int sub_axes);

  [[nodiscard]] size_t ranks() const { return ranks_; }
  [[nodiscard]] const int32_t* coordinates(size_t rank) const {
    return coordinates_.data() + rank * sub_axes_;
  }
  // Along dim d of those that take part. `p`: always the same. Valid until limit_memory.
  [[nodiscard]] const Sides& of(const PlanProblem& p, const SearchState& s, int d) const;
  // Drops what is known where that is much.
  void limit_memory() const;

 private:
  std::vector<int32_t> coordinates_;
  size_t sub_axes_ = 0;
  size_t ranks_ = 0;
  // By hash of the list; open addressing, as this is asked more often than anything else.
  struct Slot {
    uint64_t key = 0;
    uint32_t sides = 0;  // 1 + their place in known_; 0: the slot is free
  };
  mutable std::vector<Slot> slots_;
  mutable std::vector<std::shared_ptr<const Sides>> known_;  // which copies share
  void make(const PlanProblem& p, const SearchState& s, int d, Sides& sides) const;
  void grow() const;
};
// Of ranks by their row-major index in the mesh.
[[nodiscard]] RankSides sides_of_ranks(const PlanProblem& p, std::span<const int64_t> indices);

}  // namespace meshplan
