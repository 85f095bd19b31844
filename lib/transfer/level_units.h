// Units of the levels of a topology, by global id: links of a level join the ranks of one unit.
//
//     8 ranks per host, 32 per rack, one network     unit(19, l) of levels l = 0 1 2: 2 0 0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "plan/plan.h"

namespace meshplan {

// Consecutive global ids in one unit of each level, from the innermost out. The last level is one
// unit, whatever the topology says of it: INT64_MAX.
[[nodiscard]] std::vector<int64_t> level_ranks_of(const Topology& topology);

// Some levels: bit l stands for level l.
using LevelSet = uint32_t;
[[nodiscard]] inline bool has_level(LevelSet levels, size_t level) {
  return (levels >> level & 1U) != 0;
}

class LevelUnits {
 public:
  // Keeps the span.
  explicit LevelUnits(std::span<const int64_t> level_ranks) : ranks_(level_ranks) {}
  [[nodiscard]] int levels() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int64_t unit(int64_t id, int level) const {
    return level + 1 >= levels() ? 0 : floor_div(id, ranks_[static_cast<size_t>(level)]);
  }
  // Where the ranks of this list leave the unit of level 0 of the one at `begin`. `ids` ascend.
  [[nodiscard]] size_t end_of_unit(std::span<const int64_t> ids, size_t begin) const;
  // What links of the level join: units of the level inside it, ranks at level 0.
  [[nodiscard]] int64_t joined(int64_t id, int level) const {
    return level == 0 ? id : unit(id, level - 1);
  }

 private:
  std::span<const int64_t> ranks_;
};

// Where the ranks of this list leave the unit of the one at `begin`. `ids` ascend.
[[nodiscard]] inline size_t end_of_unit(std::span<const int64_t> ids, size_t begin,
                                        int64_t unit_ranks) {
  const int64_t first = floor_div(ids[begin], unit_ranks) * unit_ranks;
  size_t end = begin + 1;
  while (end < ids.size() && ids[end] - first < unit_ranks) ++end;
  return end;
}
inline size_t LevelUnits::end_of_unit(std::span<const int64_t> ids, size_t begin) const {
  return levels() == 1 ? ids.size() : meshplan::end_of_unit(ids, begin, ranks_.front());
}

}  // namespace meshplan
