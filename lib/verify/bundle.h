// The independent proof of a bundle (plan/bundle.h), whose members are proven one by one before it.
// It works out by itself who sends which box in every round, and reads no other module's answer.
//
// It checks, in this order:
//   1. members: each in the plan, once, in no other bundle, of steps in no chunks, not
//      fetched by all and without a far share;
//   2. rounds: `after` names earlier ones, ascending; parts are of members, in range, of the
//      round's op and group; only what may go in pieces does;
//   3. order: every step that communicates runs, for every like tensor and every piece, once, in a
//      round that waits for what it needs, by way of `after` and of streams (so in a later wave);
//      in two phases what is passed on waits for what is fetched;
//   4. figures: bytes, staging, messages and time of every round and of the whole, counted rank by
//      rank; they keep to the limits; the gap is what lies between time and bound.
// So every element of every target arrives once: the steps are proven to bring it, and the pieces
// of a step, by the rule that cuts them, are the step (tests/verify/bundle_test.cc follows
// elements).
//
// Like tensors cost nothing, and like members little. What would take more work than a stated bound
// is refused, and an error of the environment: nothing of a bundle is left out but the time of
// collectives between two points of a measured table, which is held to a narrow range.
#pragma once

#include <vector>

#include "base/result.h"
#include "verify/digits.h"
#include "verify/verify.h"

namespace meshplan {

// Proves one bundle of the plan. Its members must have been proven (verify_redistribution). Errors
// name bundle, round and part: "bundle 'sync', round 3, part 0: ...".
[[nodiscard]] Result<Recounted> verify_bundle(const Plan& plan, const PlannedBundle& bundle);

namespace verification {

// Of all bundles of the plan: ids once, counts and limits in range, members in the plan and in one
// bundle each.
[[nodiscard]] Problem check_bundle_members(const Plan& plan);
// Whether each redistribution is in a bundle. The members must have been checked.
[[nodiscard]] std::vector<bool> bundled(const Plan& plan);

}  // namespace verification
}  // namespace meshplan
