// Whether the rounds of a bundle run every tensor's steps, each piece once and in order, and in
// which waves what lies between two steps exists.
//
//     w1, 4 tensors, steps 0 and 1     wave 0: step 0 of tensors [0:3]    wave 1: step 0 of [3:4]
//                                      wave 2: step 1 of [0:4]
//     between the steps                3 tensors from wave 0 to 2, 1 tensor from wave 1 to 2
//
// Tensors of a member that the same parts hold are looked at as one: the work grows with the parts,
// never with the tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "verify/bundle_view.h"
#include "verify/work_left.h"

namespace meshplan::verification {

// The boxes after `step` of so many tensors of a kind: every rank has them, whole, from the first
// wave to the last, both included.
struct BoxLife {
  size_t kind = 0;
  size_t step = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t tensors = 0;
};

// The rounds must have been checked. `lives`: what lies between steps, from the first wave of the
// step before to the last wave of the step after; local steps are in the waves of the next step
// that is in a round, or of the last one.
[[nodiscard]] Problem check_order(const BundleView& view, WorkLeft& work,
                                  std::vector<BoxLife>& lives);

}  // namespace meshplan::verification
