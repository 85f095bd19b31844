// The transfers of one step: which box goes from which rank to which, from the boxes that ranks
// hold before and after it, for every rank.
//
//     2 x 2, [8], all_gather on dim 1, RS(0) -> RR
//     held before     ranks 0 2 [0:4], ranks 1 3 [4:8]
//     to rank 0       [0:4] from itself, [4:8] from rank 1     its group: the ranks 0 1
//     to rank 3       [0:4] from rank 2, [4:8] from itself     its group: the ranks 2 3
//
// The planner is not asked. A rank receives only from ranks that differ from it on the step's mesh
// dims and not on reductions that stay pending. An element that no such rank holds, and a missing
// contribution, is an error that names rank, step and index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "transfer/held_boxes.h"

namespace meshplan {

// A box that a slot receives, or keeps where `from` is its own.
struct Transfer {
  int32_t from = 0;          // slot before; of what was fetched, slot after
  int32_t contribution = 0;  // which part of the reduction (0 where nothing is reduced)
  // In the second of two phases: what the rank `from` received in the first, not what it held.
  bool fetched = false;
  Box box;
  int32_t chunk = 0;  // of two phases: in which it is sent
  bool operator==(const Transfer&) const = default;
};

// The replay rank that sends it.
[[nodiscard]] inline int32_t sender_rank(const Transfer& t, const HeldBoxes& before,
                                         const HeldBoxes& after) {
  return (t.fetched ? after : before).ranks[static_cast<size_t>(t.from)];
}

// What one slot after the step is made of.
struct SlotTransfers {
  int32_t self = -1;  // slot before of the same rank; -1: none
  // Slots before, by replay rank: the communicator, one list for all its members (null for local).
  std::shared_ptr<const std::vector<int32_t>> group;
  bool identity = false;  // the new box starts as the identity of the reduction (to_partial)
  // By contribution. Law: those of each contribution tile the new box.
  std::vector<Transfer> transfers;
};

// In the first of two phases: a box that a member of a unit fetches for all of them.
struct FirstTransfer {
  int32_t from = 0;  // slot before that holds it
  int32_t to = 0;    // slot after that fetches it
  Box box;
  int32_t chunk = 0;
};

// The lower corner of a box: what one rank fetches is disjoint, so the corner tells which it is.
[[nodiscard]] std::vector<int64_t> corner_of(const Box& box);

struct StepTransfers {
  Op op = Op::slice;
  std::vector<SlotTransfers> slots;        // one per slot after
  std::vector<FirstTransfer> first_phase;  // two phases only
  int64_t chunks = 1;                      // of two phases
  std::optional<ReduceOp> reduce_op;
  int64_t contributions = 1;
  int64_t divisor = 1;  // after the reduction
};

struct TransferQuestion {
  const HeldBoxes* before = nullptr;
  const HeldBoxes* after = nullptr;
  const Step* step = nullptr;
  const RankTable* ranks = nullptr;
  const Topology* topology = nullptr;
  std::string place;  // "redistribution 'x', step 2": the start of errors
  // All that this replay rank sends, receives or keeps; of the others what is at hand, unchecked.
  std::optional<int32_t> only = std::nullopt;
};
[[nodiscard]] Result<StepTransfers> make_transfers(const TransferQuestion& question);

}  // namespace meshplan
