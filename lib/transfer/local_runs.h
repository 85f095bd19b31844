// Where the local steps of a bundle's members are listed: of each tensor in front of the first part
// of the step behind them, which runs them (plan/bundle.h, "Order").
//
//     w1 a slice, then an exchange in pieces     round 0   piece 0 of tensors [0:2]   slices both
//                                                round 1   piece 1 of tensors [0:2]   slices none
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "tensor/box.h"

namespace meshplan {

// Of a round and one of its parts, as indices: tensors, ascending. Parts that run none are absent.
using LocalRuns = std::map<std::pair<size_t, size_t>, std::vector<Interval>>;

// Of parts in one wave the first that is listed runs them.
[[nodiscard]] LocalRuns local_runs(const Plan& plan, const PlannedBundle& bundle);

}  // namespace meshplan
