// What a redistribution says of plans that the file does not have, against the plan that it has.
//
//   alternatives   go from the source to the target by states of the mesh, each trace once and
//                  never the plan's own, best first, none cheaper than the plan less its gap; a
//                  peak holds every state on the way, and what takes time has collectives
//   audit          known findings, about steps that are there; figures of one plan are the same in
//                  all of them and in their messages; a better plan goes from the source to the
//                  target and keeps to the bounds, and where it is the plan itself has its figures
//
// The other plans themselves are not counted: verify.h lists them.
#pragma once

#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

// The figures and bounds of the redistribution must have been checked.
[[nodiscard]] Problem check_alternatives(const Plan& plan,
                                         const PlannedRedistribution& redistribution);
[[nodiscard]] Problem check_audit(const Plan& plan, const PlannedRedistribution& redistribution);

}  // namespace meshplan::verification
