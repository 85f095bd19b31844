// Units that cut a mesh evenly, in place of those of a topology that do not.
//
//     racks of 72, mesh dp 64 x tp 8 on ranks 64 to 575     its ranks in racks     8, then 72 each
//                                                           in place of 72         64, 32, 8
//
// Shardings that are even in such units are what units of the topology need about once: whichever
// 72 ranks a rack has, 64 that follow one another have all parts of what is cut over 64.
#pragma once

#include <memory>
#include <vector>

#include "transfer/level_map.h"

namespace meshplan {

// A mesh on ranks 0 1 2 .. and the topology whose units cut it evenly.
class EvenUnits {
 public:
  EvenUnits(const LevelMap& uneven, const std::vector<int64_t>& unit_ranks);
  EvenUnits(const EvenUnits&) = delete;
  EvenUnits& operator=(const EvenUnits&) = delete;
  [[nodiscard]] const LevelMap& levels() const { return levels_; }

 private:
  Mesh mesh_;
  Topology topology_;
  LevelMap levels_;
};

// By the most ranks of the mesh that a unit of each level has, by half of them, and by the least:
// the largest units that are no larger and cut the mesh evenly. None where the levels are regular
// already or the mesh's ranks do not follow one another.
[[nodiscard]] std::vector<std::unique_ptr<EvenUnits>> even_units_of(const LevelMap& levels);

}  // namespace meshplan
