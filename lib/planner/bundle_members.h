// The entries of a bundle's members become what it runs.
//
//     w1, planned alone: exchange in 1024 chunks     in the bundle: exchange, all_gather
#pragma once

#include <vector>

#include "planner/bundle_kind.h"

namespace meshplan {

// The entry becomes the other, all but its request.
void answer_as(const PlannedRedistribution& other, PlannedRedistribution& entry);

// `chosen`: the way of each kind. What a way has as planned alone stays as it is.
void settle_members(Plan& plan, const MeshLevels& levels, std::vector<Kind>& kinds,
                    const std::vector<size_t>& chosen);

}  // namespace meshplan
