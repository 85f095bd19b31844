// What a redistribution's warnings say, against its plan.
#pragma once

#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

// Each names two or more dims of its mesh, in mesh order, and a collective; a missing flatten, and
// no other, has a fix that declares these dims, named after them.
[[nodiscard]] Problem check_warnings(const Plan& plan, const PlannedRedistribution& redistribution);

// None is of dims that are flattened already, and none saves more than there is to save, in time or
// in collectives, or leaves more collectives than any plan has; each is about as many steps as the
// plan may have of it, and its message says the dims, the fix and the saving, and no number beside
// what the data has. Under PyTorch's rules each is about steps that are there, and saves just the
// collectives that go where these become one. The figures and bounds of the redistribution must
// have been checked.
[[nodiscard]] Problem check_savings(const Plan& plan, const PlannedRedistribution& redistribution);

}  // namespace meshplan::verification
