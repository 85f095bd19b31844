// Which tensors of a bundle its rounds treat alike, so that few may stand for many.
//
//     member w1, 4 tensors     round 0  w1 tensors [0:3]     round 1  w1 tensors [3:4]
//     runs                     w1 [0:3], w1 [3:4]
//
// Runs of different members are alike where the members repeat one another (plan/firsts.h) and the
// same rounds run the same steps and pieces of them.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bundle.h"
#include "plan/plan.h"

namespace meshplan {

// Like tensors [from, to) of a member, by index into the plan's redistributions.
struct TensorRange {
  size_t member = 0;
  int64_t from = 0;
  int64_t to = 0;
  bool operator==(const TensorRange&) const = default;
};

// A run of like tensors that no round cuts, and its number among those of its member.
struct AlikeRun {
  TensorRange range;
  int64_t number = 0;
};

// Every tensor of the bundle once, in the order of its members, which ascend, as in every plan that
// is proven.
[[nodiscard]] std::vector<AlikeRun> alike_runs(
    const PlannedBundle& bundle, const std::vector<PlannedRedistribution>& redistributions);

// The first and the last tensor of each range.
[[nodiscard]] std::vector<TensorRange> ends_of(const std::vector<TensorRange>& ranges);

// The first tensor of the first run and the last of the last run of all that are alike and of the
// same number, in the order of the runs.
[[nodiscard]] std::vector<TensorRange> ends_of_classes(
    const std::vector<AlikeRun>& runs, const PlannedBundle& bundle,
    const std::vector<PlannedRedistribution>& redistributions);

}  // namespace meshplan
