// How many shards along a tensor dim one part of it meets at most, of two lists of sub-axes that
// shard the dim.
//
//     6 elements, list {a 3} before, {b 2} after     [0:2][2:4][4:6] and [0:3][3:6]
//     a target meets 2 shards at most, a shard 2 targets
//
// Coordinates on the lists of different dims are independent: some rank has the most along every
// dim.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/room.h"
#include "search/list_table.h"
#include "search/rank_sides.h"

namespace meshplan {

struct PlanProblem;

class ListMeetings {
 public:
  // What peers are counted by, along one dim, empty parts apart. At least what is said: of lists
  // with very many parts less may be looked at.
  struct Most {
    int64_t shards = 1;   // of `from` that one part of `to` meets
    int64_t targets = 1;  // of `to` that one part of `from` meets
    // No more than ranks of one unit have coordinates on the list.
    int64_t shards_inside = 1;
    int64_t targets_inside = 1;
    int64_t whole = 0;  // extent of a dim that neither list cuts
    bool operator==(const Most&) const = default;
  };
  // Its number: one for all pairs of lists of which it is the same.
  [[nodiscard]] uint32_t number(const PlanProblem& p, const RankSides::Lists& from,
                                const RankSides::Lists& to, int d) const {
    const auto dim = static_cast<size_t>(d);
    uint32_t& after = dims_[dim].after.at(to.along[dim]->list, from.along[dim]->list);
    if (after == 0) after = number_of(count(p, from, to, d)) + 1;
    return after - 1;
  }
  // Valid until a number is asked for.
  [[nodiscard]] const Most& most(uint32_t number) const { return most_[number]; }

 private:
  // Parts of one list: where the first end, and where the last begin, told from the dim's end and
  // from the last one on.
  struct Parts {
    std::span<const int64_t> first;  // none: not asked yet
    std::span<const int64_t> last;   // none where `first` has all
  };
  [[nodiscard]] Parts parts(const PlanProblem& p, const RankSides::Lists& lists, int d) const;
  [[nodiscard]] Most count(const PlanProblem& p, const RankSides::Lists& from,
                           const RankSides::Lists& to, int d) const;
  [[nodiscard]] uint32_t number_of(const Most& most) const;
  struct OfDim {
    ListTable<uint32_t> after;  // the number's successor; 0: not asked yet
    std::vector<Parts> parts;   // by list, in room_
  };
  mutable Room room_;
  mutable std::array<OfDim, max_search_dims> dims_;
  mutable std::vector<Most> most_;  // few
};

// Parts of list d of `s` that are not empty and meet [lo, hi), which is not empty.
[[nodiscard]] int64_t parts_met(const PlanProblem& p, const SearchState& s, int d, int64_t lo,
                                int64_t hi);

}  // namespace meshplan
