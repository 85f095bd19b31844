// Why each step of a redistribution is there: its reason, the states around it, and the arithmetic of its cost.
#pragma once

#include <string>

#include "plan/plan.h"

namespace meshplan {

[[nodiscard]] std::string explain_redistribution(const Plan& plan, const PlannedRedistribution& redistribution);

}  // namespace meshplan
