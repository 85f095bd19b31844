// The audit: what PyTorch would do wrong or badly with its own plan for a redistribution (plan
// --audit).
//
//     A0401 merged_uneven_gather    gathers of nested uneven shards merged as if they were flat:
//                                   wrong data, no error
//     A0402 rank_dependent_merge    some ranks merge a run and others do not: their collectives do
//                                   not match
//     A0403 not_executable          a step that PyTorch plans and fails on (under its own
//                                   rules that is not a plan at all)
//     A0404 unit_dim_traffic        a mesh dim of size 1 makes other mesh dims move data
//     A0405 sequential_reductions   replicas may get results that differ in the last bits
//     A0406 whole_reduction         reduces what the target shards, before slicing it
//     A0407 merged_costs_more       a merged step that surely costs more than its parts would
//     A0408 torch_moves_more        its own plan costs more than the one beside it
//
// A0401 is exact: with w the width that the shards outside the merged ones leave, a rank's piece of
// [0, w) under the nested rule differs from its piece under one shard over the product of the
// merged sizes. Empty pieces are equal wherever they lie.
#pragma once

#include <optional>
#include <vector>

#include "torch_rules/rule_planner.h"

namespace meshplan {

// The whole redistribution under PyTorch's rules, or why there is none (then only A0403 is found).
struct TorchPlan {
  RuleAnswer answer;
  PlannedRedistribution planned;  // merged and priced
};

// Everything but the better plan, which the caller fills in. `question` has the effective target;
// its options are PyTorch's rules.
[[nodiscard]] std::vector<AuditFinding> audit_findings(const PlanQuestion& question,
                                                       const TorchPlan& torch);
// A0403, for a question that rule_transitions refused.
[[nodiscard]] AuditFinding not_executable(const Error& refusal);

// A0408, where PyTorch's plan takes longer than the planned one or, as long, moves more.
[[nodiscard]] std::optional<AuditFinding> torch_moves_more(const MeshTable& meshes,
                                                           const TorchPlan& torch,
                                                           const PlannedRedistribution& planned);

// The widths that the ranks have left of `extent` after these shards, largest first, each once.
[[nodiscard]] std::vector<int64_t> widths_left(std::span<const SubAxis> order, int64_t extent);
// The sizes of the pieces of [0, width) under nested shards of these sizes, in rank order, and
// under one flat shard; nullopt where they agree on every rank.
struct PieceSizes {
  std::vector<int64_t> nested;
  std::vector<int64_t> flat;
};
[[nodiscard]] std::optional<PieceSizes> nested_differs_from_flat(std::span<const int64_t> sizes,
                                                                 int64_t width);

}  // namespace meshplan
