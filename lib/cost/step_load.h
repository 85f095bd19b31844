// What calibration must know of a step that was measured: who takes part on each level, and of an
// exchange what goes over each.
#pragma once

#include <optional>
#include <vector>

#include "cost/step_cost.h"

namespace meshplan {

struct StepLoad {
  std::vector<int64_t> members;      // in one unit of each level; of an exchange all ranks
  std::vector<int64_t> level_bytes;  // exchange: the most that a rank moves, rounded up
  std::vector<int64_t> level_peers;  // exchange: the most peers that it has there
};

// None: a local step, groups that do not look alike everywhere, an exchange in two phases.
[[nodiscard]] std::optional<StepLoad> step_load(const StepQuestion& question);

}  // namespace meshplan
