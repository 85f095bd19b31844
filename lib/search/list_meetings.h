// How many shards along a tensor dim one part of it meets at most, of two lists of sub-axes that
// shard the dim.
//
//     6 elements, list {a 3} before, {b 2} after     [0:2][2:4][4:6] and [0:3][3:6]
//     a target meets 2 shards at most, a shard 2 targets
//
// Coordinates on the lists of different dims are independent: some rank has the most along every
// dim.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "search/search_state_bytes.h"

namespace meshplan {

struct PlanProblem;

class ListMeetings {
 public:
  struct Most {
    int64_t shards = 1;   // of `from` that one part of `to` meets
    int64_t targets = 1;  // of `to` that one part of `from` meets
  };
  // Empty parts apart. At least what is said: of lists with very many parts less may be looked at.
  // Valid until the next call.
  [[nodiscard]] const Most& of(const PlanProblem& p, const SearchState& from, const SearchState& to,
                               int d) const;

 private:
  // By hash of both lists; open addressing.
  struct Slot {
    uint64_t from = 0;
    uint64_t to = 0;
    Most most{0, 0};  // 0 shards: the slot is free
  };
  [[nodiscard]] Slot& slot(uint64_t from, uint64_t to) const;
  // Where the first parts of list d end.
  [[nodiscard]] const std::vector<int64_t>& ends(const PlanProblem& p, const SearchState& s, int d,
                                                 uint64_t key) const;
  mutable std::vector<Slot> slots_;
  mutable size_t taken_ = 0;
  mutable std::unordered_map<uint64_t, std::vector<int64_t>> ends_;  // by list
};

// Parts of list d of `s` that are not empty and meet [lo, hi), which is not empty.
[[nodiscard]] int64_t parts_met(const PlanProblem& p, const SearchState& s, int d, int64_t lo,
                                int64_t hi);

}  // namespace meshplan
