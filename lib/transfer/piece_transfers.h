// The transfers of one piece of a step (plan/bundle.h, "Pieces").
//
//     step 0   to rank 2 [0:4] from 0, [4:8] from 1     piece 0 of 2   [0:2] from 0, [4:6] from 1
//     step 1   to rank 3 [0:8] from 2                   piece 0 of 2   [0:2] and [4:6] from 2
#pragma once

#include <vector>

#include "transfer/step_transfers.h"

namespace meshplan {

// Whether a step of a redistribution may run in several pieces, each of which is a part of all
// that it moves.
[[nodiscard]] bool goes_in_pieces(const PlannedRedistribution& redistribution, size_t step);

// Along which dims boxes of step 0 are cut into pieces.
struct PieceCut {
  // By tensor dim: of the later steps that go in pieces as many in a row leave its cut as of any
  // dim, and at least one.
  std::vector<bool> steady;
};
[[nodiscard]] PieceCut piece_cut(const PlannedRedistribution& redistribution);
// The longest steady dim where it has `least_steady` slices at least, else the longest of all
// (ties: the lowest). Pieces along a dim that a later step cuts otherwise would each go to some
// of its ranks only. -1 of a scalar.
[[nodiscard]] int piece_dim(const PieceCut& cut, const Box& box);
constexpr int64_t least_steady = 16;

// Part of what a rank got in a step: in piece i of k, what `box` has of the i-th part of `cut`
// along `dim`, the box of step 0 in which it left its source.
struct GotBox {
  Box cut;
  int dim = 0;
  Box box;
};
using GotBoxes = std::vector<std::vector<GotBox>>;  // by slot after the step

[[nodiscard]] GotBoxes got_in_first(const PieceCut& cut, const StepTransfers& first);
// In a step behind one in which ranks got `before`.
[[nodiscard]] GotBoxes got_in_next(const GotBoxes& before, const StepTransfers& step);

// Law of both: the pieces of a step together bring every element that the step brings, once.
[[nodiscard]] StepTransfers piece_of_first(const PieceCut& cut, const StepTransfers& first,
                                           int64_t piece, int64_t pieces);
[[nodiscard]] StepTransfers piece_of_next(const GotBoxes& before, const StepTransfers& step,
                                          int64_t piece, int64_t pieces);

// Pieces of an exchange in two phases, which is not cut into chunks. `phase` 1: what is fetched, as
// it lands in the box after the step; 2: what ranks keep and pass on, also of what they fetched,
// from there. Of every box near-equal part `part` of `parts`.
[[nodiscard]] StepTransfers part_of_phase(const StepTransfers& step, int phase, int64_t part,
                                          int64_t parts);

// Either phase of such an exchange behind steps that go in pieces, as a step of its own: all of
// whose senders have it before the exchange, and what is passed on from boxes after it.
//
//     hosts of 2, [8], S(0) over 4 -> R     1: rank 0 fetches [4:6] from 2, rank 1 [6:8] from 3,
//                                              and each sends the other what it had
//                                           2: each sends the other what it fetched
//
// Law: phase 1 with got_in_next of the step before, then phase 2 with got_in_next of phase 1, are
// two steps that go in pieces (transfer/step_cuts.h: senders of phase 2 are slots after the step).
[[nodiscard]] StepTransfers phase_as_step(const StepTransfers& step, int phase);
// Whether the step is in two phases and runs so.
[[nodiscard]] bool phases_go_in_pieces(const PlannedRedistribution& redistribution, size_t step);

}  // namespace meshplan
