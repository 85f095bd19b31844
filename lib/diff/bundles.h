// What differs between the bundles of two plans, one sentence each.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace meshplan {

// The id of the bundle that redistribution `i` of one plan and `j` of the other are in; "": none.
[[nodiscard]] std::string common_bundle(const Plan& before, size_t i, const Plan& after, size_t j);

// Bundles are matched by id. "bundle sync: 12 rounds and 401 ms predicted, was 9 and 395 ms"
[[nodiscard]] std::vector<std::string> compare_bundles(const Plan& before, const Plan& after);

}  // namespace meshplan
