// Where ranks sit in a topology: the units of its levels.
//
//   levels of 4 and all ranks, world 16    unit of level 0: global id / 4    unit of level 1: 0
//   dim a 4:4    every rank of it in another unit of level 0
//   dim b 4:1    all of it in one
//   dim c 8:2    c:(1)4 across units, c:(4)2 inside of one
//
// A layout is clean where its modes cut every unit into equal parts: then any group of that layout
// has the same number of members in each unit that it meets, whatever rank it starts at, as a
// tiling of the world numbers its positions digit by digit. Else groups differ, by where they start
// within a period of the units.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mesh/mesh.h"
#include "plan/plan.h"
#include "verify/traffic.h"

namespace meshplan::verification {

// A factor of a mesh dim whose ranks lie in one unit of `level` and in different ones of the level
// inside of it.
struct LevelPart {
  int64_t before = 1;  // product of the more major factors
  int64_t size = 1;
  size_t level = 0;
};

// How the members of one group spread over units: either every member sees `members[l]` of them,
// itself included, in its unit of level l; or they differ, and `more[l]` is the most that one sees
// in its unit of level l beyond its unit of the level inside.
struct GroupPattern {
  bool alike = true;
  std::array<int64_t, most_levels> members{};
  std::array<int64_t, most_levels> more{};
};

class Units {
 public:
  Units(const Universe& universe, const Topology& topology);

  [[nodiscard]] size_t levels() const { return ranks_.size(); }
  // Consecutive global ids in one unit; INT64_MAX for the outermost level, which holds every rank.
  [[nodiscard]] int64_t ranks(size_t level) const { return ranks_[level]; }
  // Whether positions of the rank map stand for global ids: where units are cut, both count alike.
  [[nodiscard]] bool plain() const { return plain_; }
  // After how many positions the cuts of all units repeat; 0: more than `longest_period`.
  [[nodiscard]] int64_t period() const { return period_; }

  // The parts of a layout, major first, parts of size 1 left out and neighbours of one level
  // joined; nullopt where it is not clean.
  [[nodiscard]] std::optional<std::vector<LevelPart>> parts_of(const Layout& layout) const;
  // The distinct ways in which groups of this layout spread over units, over the whole world;
  // nullopt where that takes more than `most_listed` look-ups.
  [[nodiscard]] std::optional<std::vector<GroupPattern>> patterns(const Layout& group) const;
  // Positions at which a layout that tiles the world with `layout` starts, one for each way that
  // units can cut it; nullopt as above.
  [[nodiscard]] std::optional<std::vector<int64_t>> distinct_bases(const Layout& layout) const;

 private:
  [[nodiscard]] GroupPattern pattern_of(std::vector<int64_t>& ids) const;

  const Universe* universe_;
  std::vector<int64_t> ranks_;
  bool plain_ = true;
  int64_t period_ = 1;
};

constexpr int64_t longest_period = int64_t{1} << 16;
constexpr int64_t most_listed = int64_t{1} << 23;

}  // namespace meshplan::verification
