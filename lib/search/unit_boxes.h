// The boxes that the ranks of a unit hold or want in a state, each once: what units need is asked
// of pairs of states, and there are far fewer states than pairs.
//
//     ranks 0 1 2 3 of 2 x 4 on units of 4, [8], S(0)[a]     one box, [0:4], of 4 members
//     S(0)[b]                                                [0:2] [2:4] [4:6] [6:8], of one each
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "search/rank_sides.h"

namespace meshplan {

struct UnitRanks;

// Of members that differ on what keeps them apart, a box stands there several times.
struct UnitBoxes {
  struct Of {
    int64_t apart = 0;          // coordinates on what keeps ranks apart
    int64_t elements = 0;       // along the dims that take part
    int64_t members = 0;        // that have it
    int64_t contributions = 0;  // different ones among them
  };
  std::vector<Of> box;
  // Of each tensor dim that takes part the sides of all boxes next to each other.
  std::vector<int64_t> low;
  std::vector<int64_t> high;
  std::vector<uint8_t> of_member;  // which of them it has

  [[nodiscard]] size_t size() const { return box.size(); }
};

// `contributions`, `apart`: the sub-axes on which members that have one box have different
// contributions to it, and those on which ranks differ that do not talk. At most 255 members.
[[nodiscard]] UnitBoxes list_unit_boxes(const PlanProblem& p, const UnitRanks& unit,
                                        const SearchState& s, uint16_t contributions,
                                        uint16_t apart);

// Those of every unit that is looked at, remembered.
class UnitBoxTable {
 public:
  class OfState {
   public:
    OfState() = default;
    OfState(const SearchState& lists, uint16_t contributions, uint16_t apart)
        : lists_(lists), contributions_(contributions), apart_(apart) {}
    // Listed when they are first asked for.
    [[nodiscard]] const UnitBoxes& of(const PlanProblem& p, size_t unit) const;
    // Parts that the lists cut the tensor into.
    [[nodiscard]] int64_t parts(const PlanProblem& p) const;

   private:
    SearchState lists_;
    uint16_t contributions_ = 0;
    uint16_t apart_ = 0;
    mutable int64_t parts_ = 0;  // 0: not asked yet
    mutable std::vector<UnitBoxes> units_;
  };
  // Valid until limit_memory.
  [[nodiscard]] const OfState& of(const SearchState& s, uint16_t contributions, uint16_t apart);
  // Drops what is known where that is much. `boxes_a_state`: that all units have at most.
  void limit_memory(size_t boxes_a_state);

 private:
  struct Slot {
    SearchState key;     // the lists; pending are the contributions, made is what keeps apart
    uint32_t boxes = 0;  // 1 + their place in known_; 0: the slot is free
  };
  void grow();
  std::vector<Slot> slots_;
  std::vector<std::shared_ptr<OfState>> known_;  // which copies share
};

}  // namespace meshplan
