// What a set of ranks must take in and give away, whatever the plan.
//
// In:  every element that the set's ranks want and for which some contribution lies with ranks
//      outside only. At least one value an element enters the set over the links of its members,
//      who may pass it on inside.
// Out: every element for which the set alone holds some contribution, and which ranks outside want.
//      At least one value leaves.
//
// Where the target is pending, the ranks of a cell hold the value together, in any way: zero-filled
// contributions leave a shard where it is. A cell that lies inside the set wants its box there; one
// that lies outside wants it outside; one that does both counts in neither.
//
// Law: moving the roles of source and target, for states without anything pending, swaps in and
// out.
#pragma once

#include "cost/rank_boxes.h"

namespace meshplan {

struct SetNeed {
  int64_t in = 0;  // elements
  int64_t out = 0;
  int64_t contributions = 0;  // the most that the set holds to one box
  bool holds = false;         // some source box
  bool wants = false;         // some target box as a whole
};

// Counts for one set after the other; storage is kept.
class SetNeeds {
 public:
  explicit SetNeeds(const Participants& all);
  // `members`: indices into all.ranks. O(members * tensor dims) but for the pairs of boxes
  // (cost/rank_boxes.h).
  [[nodiscard]] SetNeed of(std::span<const int32_t> members);
  // Of a rank alone: the same as of a set of one, sooner.
  [[nodiscard]] SetNeed of_rank(int32_t member);
  // How many of the sets asked for since the last call want each box as a whole.
  [[nodiscard]] std::vector<int64_t> take_wanting();

 private:
  // Counters that are zero again for the next set. Ranks alone need none: they are made for the
  // first set.
  class Counts {
   public:
    explicit Counts(int64_t n) : size_(static_cast<size_t>(n)) {}
    int64_t add(int32_t set, size_t i) {
      if (counts_.empty()) counts_.resize(size_);
      Count& count = counts_[i];
      if (count.set != set) count = {set, 0};
      return ++count.members;
    }

   private:
    struct Count {
      int32_t set = 0;
      int32_t members = 0;
    };
    size_t size_;
    std::vector<Count> counts_;
  };

  const Participants* all_;
  int32_t set_ = 0;
  Counts holders_;        // by box and contribution
  Counts contributions_;  // by box
  Counts alone_;          // contributions that only the set holds, by box
  Counts cell_ranks_;     // by cell
  Counts cells_;          // that meet the set, by box
  Counts whole_cells_;    // that lie inside, by box
  std::vector<int64_t> wanting_;
  std::vector<int32_t> held_, sole_, met_, wanted_;
};

}  // namespace meshplan
