// The transfers of one piece of a step (plan/bundle.h, "Pieces").
//
//     step 0   to rank 2 [0:4] from 0, [4:8] from 1     piece 0 of 2   [0:2] from 0, [4:6] from 1
//     step 1   to rank 3 [0:8] from 2                   piece 0 of 2   [0:2] and [4:6] from 2
#pragma once

#include <vector>

#include "transfer/step_transfers.h"

namespace meshplan {

// Whether a step of a redistribution may run in several pieces.
[[nodiscard]] bool goes_in_pieces(const PlannedRedistribution& redistribution, size_t step);

// Part of what a rank got in a step: in piece i of k, what `box` has of the i-th part of `cut`, the
// box of step 0 in which it left its source.
struct GotBox {
  Box cut;
  Box box;
};
using GotBoxes = std::vector<std::vector<GotBox>>;  // by slot after the step

[[nodiscard]] GotBoxes got_in_first(const StepTransfers& first);
// In a step behind one in which ranks got `before`.
[[nodiscard]] GotBoxes got_in_next(const GotBoxes& before, const StepTransfers& step);

// Law of both: the pieces of a step together bring every element that the step brings, once.
[[nodiscard]] StepTransfers piece_of_first(const StepTransfers& first, int64_t piece,
                                           int64_t pieces);
[[nodiscard]] StepTransfers piece_of_next(const GotBoxes& before, const StepTransfers& step,
                                          int64_t piece, int64_t pieces);

}  // namespace meshplan
