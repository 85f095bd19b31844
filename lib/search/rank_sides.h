// What some ranks of a problem have along its tensor dims, by the list of sub-axes that shards one:
// there are few lists and many states, so it is worked out once a list, for all of them at once.
//
//     ranks 0 1 2 3 = coordinates 00 01 10 11 on sub-axes 0 1, [6, ...]
//     list {1} of dim 0     sides [0:3] [3:6] [0:3] [3:6]     numbers 0 1 0 1
//
// The ranks stand in parts: those that bounds list, then the members of each unit that is looked
// at.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/room.h"
#include "search/search_state_bytes.h"
#include "tensor/box.h"

namespace meshplan {

struct PlanProblem;

class RankSides {
 public:
  // By rank, the parts in a row. What is listed stands in the room of whoever knows it.
  struct Sides {
    uint32_t list = 0;      // its number among the lists of the dim
    uint16_t sub_axes = 0;  // on the list
    bool even = true;       // all of the mesh are as wide
    std::span<const Interval> side;
    std::span<const int64_t> number;  // of `numbers`: the coordinates on the list as one
    int64_t numbers = 1;
    int64_t widest = 0;  // side of any rank of the mesh: that of coordinates 0
    // What the ranks of a part but the first have together, ascending and apart.
    [[nodiscard]] std::span<const Interval> joined_of(size_t part) const {
      const uint32_t begin = part == 1 ? 0 : joined_end[part - 2];
      return joined.subspan(begin, joined_end[part - 1] - begin);
    }
    std::span<const Interval> joined;  // of one part after another
    std::span<const uint32_t> joined_end;
  };

  // Of all lists of a state. Of a scalar: of the one that stays empty.
  struct Lists {
    SearchState of;                                     // whatever is pending or made
    uint16_t sub_axes = 0;                              // on any list
    std::array<const Sides*, max_search_dims> along{};  // nullptr: nothing was asked yet
    // Elements of the widest box along the dims that take part.
    int64_t widest = 1;
    uint32_t drops = 0;  // of what was known, before
  };

  RankSides() = default;
  explicit RankSides(int sub_axes) : sub_axes_(static_cast<size_t>(sub_axes)) {}
  // Adds a part; nothing was asked yet. Coordinates on every sub-axis of the problem, rank-major.
  void add_part(std::span<const int32_t> coordinates);
  // The same of ranks by their row-major index in the mesh.
  void add_ranks(const PlanProblem& p, std::span<const int64_t> indices);

  [[nodiscard]] size_t begin_of(size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }
  [[nodiscard]] size_t ranks_of(size_t part) const {
    return part < ends_.size() ? ends_[part] - begin_of(part) : 0;
  }
  [[nodiscard]] int32_t coordinate(size_t rank, size_t sub_axis) const {
    return coordinates_[sub_axis][rank];
  }
  // Along dim d of those that take part. `p`: always the same. Valid until limit_memory.
  [[nodiscard]] const Sides& of(const PlanProblem& p, const SearchState& s, int d) const;
  // Of every dim that takes part. The same conditions; valid until two others were asked for. Where
  // more elements than an int64_t holds are in the tensor, the widest box may be wrong.
  [[nodiscard]] const Lists& lists(const PlanProblem& p, const SearchState& s) const {
    const Lists* const known = find_recent(s);
    return known != nullptr ? *known : make_lists(p, s);
  }
  // Whether they are still valid.
  [[nodiscard]] bool knows(const Lists& lists) const { return lists.drops == drops_; }
  // They are asked for next: sooner, where they are still valid. Who looks at very many pairs of
  // states keeps them.
  void recall(const Lists& lists) const;
  // Drops what is known where that is much.
  void limit_memory() const {
    if (known_.size() > most_known_) drop_known();
  }

 private:
  [[nodiscard]] size_t ranks() const { return ends_.empty() ? 0 : ends_.back(); }
  void drop_known() const;
  std::array<std::vector<int32_t>, max_sub_axes> coordinates_;  // by sub-axis, of every rank
  size_t sub_axes_ = 0;
  std::vector<size_t> ends_;      // of each part
  size_t most_known_ = SIZE_MAX;  // lists
  // By hash of the list; open addressing, as this is asked more often than anything else.
  struct Slot {
    uint64_t key = 0;
    uint32_t sides = 0;  // 1 + their place in known_; 0: the slot is free
  };
  mutable std::vector<Slot> slots_;
  mutable std::vector<const Sides*> known_;
  mutable Room room_;  // where these stand, and what they list
  // Of the states asked for last, as pairs of them are.
  mutable std::array<Lists, 2> recent_{};
  mutable size_t oldest_ = 0;  // of these
  mutable uint32_t drops_ = 0;
  [[nodiscard]] const Lists* find_recent(const SearchState& s) const {
    const auto is_of = [&](const Lists& lists) {
      return same_lists(lists.of, s) && lists.along[0] != nullptr;
    };
    if (is_of(recent_[1 - oldest_])) return &recent_[1 - oldest_];
    if (!is_of(recent_[oldest_])) return nullptr;
    oldest_ = 1 - oldest_;
    return &recent_[1 - oldest_];
  }
  [[nodiscard]] const Lists& make_lists(const PlanProblem& p, const SearchState& s) const;
  mutable std::array<uint32_t, max_search_dims> lists_known_{};
  [[nodiscard]] const Sides* make(const PlanProblem& p, const SearchState& s, int d) const;
  void grow() const;
};

}  // namespace meshplan
