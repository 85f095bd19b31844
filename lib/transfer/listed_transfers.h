// The transfers of one step as rows that another program can execute: which box goes from which
// buffer of which rank to which buffer of which rank, and where in the buffers it begins.
//
//     2 x 2, [8], all_gather on dim 1, RS(0) -> RR, for rank 0
//     copy  0 -> 0  [0:4]  from its held box [0:4] at 0   to its new box [0:8] at 0
//     send  1 -> 0  [4:8]  from its held box [4:8] at 0   to its new box [0:8] at 4
//
// What executes a step:
// - Every rank has a buffer of its box before the step and gets one of its box after it, both
//   row-major. `fill` rows come first: the new box starts as the identity of `reduce_op`.
// - A new element is what its rows bring, combined over contributions by `reduce_op`, then divided
//   by `divisor`. Without a reduction every element has one row.
// - In an exchange of two phases, the first fetches parts into a packed buffer of their own, and
//   the rows of the second phase take them from there. Either phase after phase, or chunk by chunk:
//   a row of the second phase needs those of the first up to its own chunk.
#pragma once

#include <cstdint>
#include <functional>

#include "transfer/step_transfers.h"

namespace meshplan {

// share: a send of what the rank got in an earlier piece of the same step, from its new box
// (part_of_phase).
enum class TransferAction : uint8_t { fill, copy, send, share };
[[nodiscard]] const char* to_text(TransferAction action);

// One end of a transfer. A box of a buffer that holds `whole`, row-major, begins at `offset`.
struct TransferEnd {
  int64_t rank = -1;     // global id; -1: there is none (fill)
  bool fetched = false;  // the buffer of what the first phase fetched, not that of the rank's box
  Box whole;
  int64_t offset = 0;  // elements
};

struct ListedTransfer {
  int64_t phase = 1;
  int64_t chunk = 0;  // of two phases
  TransferAction action = TransferAction::send;
  int64_t contribution = 0;
  Box box;
  TransferEnd from;
  TransferEnd to;
};

// What every rank holds before the first step and after each: one more than there are steps.
[[nodiscard]] std::vector<HeldBoxes> held_boxes_of(const Plan& plan,
                                                   const PlannedRedistribution& redistribution,
                                                   const RankTable& ranks);

// Calls `visit` for every row, ordered by phase, receiver, contribution, sender and box; one row
// exists at a time. Ends with the first error of `visit`.
using TransferVisitor = std::function<Status(const ListedTransfer&)>;
[[nodiscard]] Status list_transfers(const StepTransfers& transfers, const HeldBoxes& before,
                                    const HeldBoxes& after, const RankTable& ranks,
                                    const TransferVisitor& visit);

}  // namespace meshplan
