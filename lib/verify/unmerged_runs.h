// Steps that stand behind one another and do the same on one mesh dim each, of which PyTorch's
// rules might have made one: what their warnings are about. Read off the steps that are there.
//
//     S(0)[0]S(0)[1] -> S(0)R -> RR     a run of 2 all_gathers over tp, dp: 1 with dp_tp flattened
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

struct UnmergedRun {
  Op op = Op::all_gather;
  std::vector<int32_t> mesh_dims;  // as its steps run
  int64_t collectives = 0;         // its steps of more than one rank
  int64_t ranks = 1;               // of all its mesh dims together
  int32_t tensor_dim = 0;          // that it gathers or scatters
  int64_t extent = 0;              // the largest of that tensor dim that a step sees
};

// Law: no run goes on in a step before or behind it. Runs of one step are none.
[[nodiscard]] std::vector<UnmergedRun> unmerged_runs(const PlannedRedistribution& redistribution);

// What keeps PyTorch from making one step of the run, `flattened` or not.
[[nodiscard]] std::optional<WarningKind> obstacle_of(const UnmergedRun& run, bool flattened);

}  // namespace meshplan::verification
