// What one step costs: bytes, peak and picoseconds, from the two states alone.
#pragma once

#include <string>

#include "mesh/mesh.h"
#include "plan/plan.h"

namespace meshplan {

class LevelMap;

struct StepCost {
  int64_t wire_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t predicted_ps = 0;
  int64_t level = -1;  // outermost level used; -1: no communication
  std::string tier;    // "levels", "protocols", "measured"
  bool operator==(const StepCost&) const = default;
};

struct StepQuestion {
  const Topology* topology = nullptr;
  const Mesh* src_mesh = nullptr;  // mesh of the state before
  // mesh of the state after; the same one unless an exchange crosses meshes
  const Mesh* dst_mesh = nullptr;
  const TensorMeta* tensor = nullptr;
  std::optional<DType> reduce_dtype;
  const State* before = nullptr;
  const Step* step = nullptr;  // op, mesh_dims, state, phases, whole_pieces, reduce_op
};

// Prices any step of any planner. The cost does not grow with the number of ranks where the layouts
// answer.
[[nodiscard]] StepCost price_step(const StepQuestion& question);

// Several sentences that show the arithmetic of the step: members per level, bytes per level,
// latency, peers, the maximum and the rounding.
[[nodiscard]] std::string explain_cost(const StepQuestion& question);

// The figures of every step and the totals of the redistribution (not its lower bounds).
void price_redistribution(PlannedRedistribution& redistribution, const MeshTable& meshes,
                          const Topology& topology);
// The same with the level map of the source mesh at hand, which remembers what was listed.
void price_redistribution(PlannedRedistribution& redistribution, const MeshTable& meshes,
                          const LevelMap& src_levels);

}  // namespace meshplan
