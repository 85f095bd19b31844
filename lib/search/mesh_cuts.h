// Where a mesh dim is cut into the sub-axes of a question.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/state.h"
#include "transfer/level_map.h"

namespace meshplan {

// At the ends of sub-axes that the states already use and at level boundaries. Collectives run on
// the parts only where every group is allowed, exchanges lead to what they shard all the same.
class MeshCuts {
 public:
  // `split`: at levels, too.
  void find(const LevelMap& levels, size_t mesh_dim, const State& src, const State& dst,
            bool split);
  // Products of leading factors, ascending; the first is 1, the last the size of the mesh dim.
  [[nodiscard]] const std::vector<int64_t>& cuts() const { return cuts_; }
  // Whether levels cut where neither state does.
  [[nodiscard]] bool at_levels() const { return at_levels_; }

 private:
  // Where units cut a mesh dim unevenly: off its largest minor part that lies inside of units
  // everywhere, over which a sum is soon reduced.
  //
  //     8 x 6 on hosts of 8, S(0)P(sum) -> S(0)S(1): pairs first, then threes of half the bytes
  void cut_inside_units(const LevelMap& levels, int32_t mesh_dim, int64_t size);
  void sort();
  void use(size_t mesh_dim, const SubAxis& sub_axis);

  std::vector<int64_t> cuts_;  // ascending
  bool at_levels_ = false;
};

}  // namespace meshplan
