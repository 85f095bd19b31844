// The merge pass: neighbouring transitions of one kind become one collective on a flattened group,
// as PyTorch merges them.
//
//     mesh a 2 x b 4, flattened {a, b}    P(sum)P(sum)->RP(sum)->RR  becomes  P(sum)P(sum)-->RR
//
// A run is a maximal stretch of neighbours that are all all_reduce, all all_gather or all
// reduce_scatter, with the same source and target placement (sum and avg count as the same).
// Nothing is reordered: P P P -> R S R has three runs of one. What stands in the way, tested in
// this order, is the warning:
//   non_ascending     a reduce_scatter's mesh dims must ascend in step order, an all_gather's
//                     descend (the last of the order goes first);
//   missing_flatten   the mesh dims of the run must be declared flattened, found by layout;
//   uneven_shape      a reduce_scatter's outermost logical size must divide by the merged group.
//
// What it is not: a judgement of whether merging pays, or of whether PyTorch's merged data is right
// (audit.h).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "torch_rules/transition.h"

namespace meshplan {

// Neighbouring transitions [first, first + count) that run as one collective; count 1: as it
// stands.
struct MergedRun {
  size_t first = 0;
  size_t count = 1;
  bool operator==(const MergedRun&) const = default;
};

// A run that stayed apart, and why.
struct UnmergedRun {
  MergedRun run;
  WarningKind reason = WarningKind::missing_flatten;
  std::vector<int32_t> mesh_dims;  // ascending
  Op op = Op::all_reduce;
};

struct MergeResult {
  std::vector<MergedRun> runs;  // in order, covering every transition once
  std::vector<UnmergedRun> unmerged;
};

// Whether these mesh dims (ascending) are declared flattened.
using IsDeclared = std::function<bool(std::span<const int32_t> mesh_dims)>;

enum class MergeRule : uint8_t {
  whole_run,  // PyTorch: all of a run or nothing
  // else its longest part that may merge (the first of equals), then the rest likewise
  largest_sub_run,
};

// Neighbours that may run as one collective if everything else allows it.
[[nodiscard]] bool may_join(const Transition& a, const Transition& b);

// Why the run may not be one collective; nullopt: it may. Requires two or more transitions that may
// join.
[[nodiscard]] std::optional<WarningKind> merge_obstacle(std::span<const Transition> run,
                                                        std::span<const int64_t> mesh_shape,
                                                        const IsDeclared& is_declared);

[[nodiscard]] MergeResult merge_transitions(std::span<const Transition> transitions,
                                            std::span<const int64_t> mesh_shape,
                                            const IsDeclared& is_declared,
                                            MergeRule rule = MergeRule::whole_run);

// The runs as steps with their states, operations, scales and reasons; groups, costs and peaks are
// the pipeline's.
[[nodiscard]] std::vector<Step> steps_of(const State& src, std::span<const Transition> transitions,
                                         std::span<const MergedRun> runs, const Mesh& mesh,
                                         ShardPosition position);

}  // namespace meshplan
