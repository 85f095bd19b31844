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
#include <vector>

#include "search/list_table.h"
#include "search/rank_sides.h"

namespace meshplan {

struct PlanProblem;

class ListMeetings {
 public:
  struct Most {
    int64_t shards = 0;   // of `from` that one part of `to` meets; 0: not asked yet
    int64_t targets = 0;  // of `to` that one part of `from` meets
    uint32_t alike = 0;   // a number: the same of pairs of lists that peers tell nothing apart by
  };
  // What peers are counted by, along one dim.
  struct Alike {
    int64_t shards = 1;
    int64_t targets = 1;
    // No more than ranks of one unit have coordinates on the list.
    int64_t shards_inside = 1;
    int64_t targets_inside = 1;
    int64_t whole = 0;  // extent of a dim that neither list cuts
    bool operator==(const Alike&) const = default;
  };
  // Empty parts apart. At least what is said: of lists with very many parts less may be looked at.
  // Valid until the next call.
  [[nodiscard]] const Most& of(const PlanProblem& p, const RankSides::Lists& from,
                               const RankSides::Lists& to, int d) const {
    const auto dim = static_cast<size_t>(d);
    Most& most = dims_[dim].most.at(to.along[dim]->list, from.along[dim]->list);
    if (most.shards == 0) count(p, from, to, d, most);
    return most;
  }
  [[nodiscard]] const Alike& alike(uint32_t number) const { return alike_[number]; }

 private:
  // Where the first parts of list d end.
  [[nodiscard]] const std::vector<int64_t>& ends(const PlanProblem& p,
                                                 const RankSides::Lists& lists, int d) const;
  void count(const PlanProblem& p, const RankSides::Lists& from, const RankSides::Lists& to, int d,
             Most& most) const;
  [[nodiscard]] uint32_t number_of(const Alike& alike) const;
  struct OfDim {
    ListTable<Most> most;
    std::vector<std::vector<int64_t>> ends;  // by list; none: not asked yet
  };
  mutable std::array<OfDim, max_search_dims> dims_;
  mutable std::vector<Alike> alike_;  // few
};

// Parts of list d of `s` that are not empty and meet [lo, hi), which is not empty.
[[nodiscard]] int64_t parts_met(const PlanProblem& p, const SearchState& s, int d, int64_t lo,
                                int64_t hi);

}  // namespace meshplan
