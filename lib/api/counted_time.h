// What redistributions take is counted in picoseconds of 64 bits: 106 days and a half. Beyond that
// totals would say less than there is, and budgets would pass that should fail.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace meshplan {

struct BeyondCount {
  size_t index = 0;  // of the redistribution, or the first member of the bundle, that is too much
  std::string message;  // names it
};
// The first of the file, in its order, bundles behind what is in none, with which the times of all
// so far (predicted, their lower bounds, and of a bundle what its members take one by one) are more
// than is counted. The redistributions have their plans.
[[nodiscard]] std::optional<BeyondCount> first_beyond_count(const Plan& plan);

}  // namespace meshplan
