// What the last communicating step of a plan takes at least: it refuses states before any move is
// listed.
#pragma once

#include "search/least_outside.h"

namespace meshplan {

// What a plan from `at` takes at least whose only communicating step is a collective, with local
// steps before and after it, ps. INT64_MAX where there is none within the problem's state limit;
// `least`, the bound on any plan from there, where reductions are open or the world does not pack.
[[nodiscard]] int64_t last_collective_floor_ps(const PlanProblem& p, const PackedWorld& world,
                                               const SearchState& at, int64_t least);

// What any plan from `at` to the target takes at least, ps. `least`: the bound on it. Not below
// that: either one communicating step is left, and its floors count, or several are.
// `steps_take_time`: none of them is free. `outside`: what is known of plans of use.
[[nodiscard]] int64_t rest_floor_ps(const PlanProblem& p, PackedWorld& world, const SearchState& at,
                                    const Packed& packed, const Packed& target, int64_t least,
                                    bool steps_take_time, const OutsideLeft& outside = {});

}  // namespace meshplan
