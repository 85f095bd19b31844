// What a list of sub-axes before and one after have to do with each other along the tensor dim that
// they shard, on the ranks and units that bounds look at: there are few pairs of lists and very
// many pairs of states, so it is worked out once a pair of lists.
//
//     8 rows, a 2 x b 2, list {a} before, {b} after     rank 01 wants [4:8] and has none of it,
//                                                       rank 11 has all of it
//     ranks 00 01 as a unit                             they hold [0:4], want [0:8], both: 4 rows
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "search/list_table.h"
#include "search/rank_sides.h"

namespace meshplan {

struct PlanProblem;

class ListPairs {
 public:
  // Where what is known of a pair stands; valid until limit_memory.
  using Place = size_t;
  // Elements along the dim, of all members of a unit together.
  struct InUnit {
    int64_t held = 0;
    int64_t wanted = 0;
    int64_t both = 0;
  };

  // Along dim d of those that take part. `p`: always the same, and so are its units.
  [[nodiscard]] Place of(const PlanProblem& p, const RankSides::Lists& from,
                         const RankSides::Lists& to, int d) {
    const auto dim = static_cast<size_t>(d);
    Place& known = places_[dim].at(to.along[dim]->list, from.along[dim]->list);
    if (known == 0) {
      known = values_.size() + 1;
      add(p, from, to, d);
    }
    return known - 1;
  }
  // Whether both lists cut the dim evenly.
  [[nodiscard]] bool even(Place pair) const { return (values_[pair] & is_even) != 0; }
  // Whether all listed ranks want as much and have as much of it.
  [[nodiscard]] bool alike(Place pair) const { return (values_[pair] & is_alike) != 0; }
  // Elements that each of the listed ranks (PlanProblem::listed_ranks) wants, and has of these.
  [[nodiscard]] const int64_t* wanted(Place pair) const { return &values_[pair + 1]; }
  [[nodiscard]] const int64_t* kept(Place pair) const { return &values_[pair + 1 + ranks_]; }
  [[nodiscard]] InUnit in_unit(Place pair, size_t unit) const {
    const int64_t* of_unit = &values_[pair + 1 + 2 * ranks_ + 3 * unit];
    return {of_unit[0], of_unit[1], of_unit[2]};
  }
  // Drops what is known where that is much.
  void limit_memory() {
    if (values_.size() > most_values) drop_known();
  }

 private:
  // What stands at a place: these flags, what each rank wants, what it keeps, and what each unit
  // holds, wants, and both.
  static constexpr int64_t is_even = 1;
  static constexpr int64_t is_alike = 2;
  static constexpr size_t most_values = size_t{1} << 21;  // remembered
  void add(const PlanProblem& p, const RankSides::Lists& from, const RankSides::Lists& to, int d);
  void drop_known();

  size_t ranks_ = 0;                                      // listed
  std::array<ListTable<Place>, max_search_dims> places_;  // 1 + the place; 0: not asked yet
  std::vector<int64_t> values_;
};

// Of all dims that take part; none of a scalar. Valid until the next call.
using PairPlaces = std::array<ListPairs::Place, max_search_dims>;
[[nodiscard]] PairPlaces pairs_of_lists(const PlanProblem& p, const SearchState& from,
                                        const SearchState& to);

// The most elements that one of the listed ranks' target has and its source has not, where each
// comes in so many contributions, of which a source has one.
[[nodiscard]] int64_t most_missing(const PlanProblem& p, const PairPlaces& at,
                                   int64_t contributions);

}  // namespace meshplan
