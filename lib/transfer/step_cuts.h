// What a step of one tensor moves between pairs of ranks, in elements: whole, or any piece of it
// (transfer/piece_transfers.h), without its boxes.
//
//     to rank 2 [0:4, 0:6] from rank 0       dim 1 is the longest, 6 slices of 4 elements
//     piece 0 of 4                           2 slices: 8 elements from 0 to 2
//
// Law: equal to the volumes of piece_of_first and piece_of_next
// (tests/transfer/step_cuts_test.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/int_math.h"
#include "tensor/box.h"
#include "transfer/exchange_transfers.h"
#include "transfer/held_boxes.h"
#include "transfer/piece_transfers.h"
#include "transfer/step_transfers.h"

namespace meshplan {

// `slice` elements for each of the slices [lo, hi) of `length`; piece i of k has the i-th
// near-equal part of [0, length).
struct StepCut {
  int32_t from = 0;  // replay ranks, which differ
  int32_t to = 0;
  int64_t length = 1;
  int64_t lo = 0;
  int64_t hi = 1;
  int64_t slice = 0;
};
// By sender, then receiver; those that are cut alike joined.
[[nodiscard]] std::vector<StepCut> cuts_of(const PieceCut& cut, const StepTransfers& transfers,
                                           const HeldBoxes& before, const HeldBoxes& after);
// Of a step behind one in which ranks got `got`, in the pieces in which its senders got what they
// send.
[[nodiscard]] std::vector<StepCut> cuts_of_next(const GotBoxes& got, const StepTransfers& transfers,
                                                const HeldBoxes& before, const HeldBoxes& after);

// Of one phase of an exchange in two, in the parts of part_of_phase.
[[nodiscard]] std::vector<StepCut> cuts_of_phase(const StepTransfers& transfers, int phase,
                                                 const HeldBoxes& before, const HeldBoxes& after);

struct PairElements {
  int32_t from = 0;
  int32_t to = 0;
  int64_t elements = 0;
};
// Of the whole step in one phase, or of what part_of_phase gives: one for each transfer, in no
// order, and pairs may be there several times.
[[nodiscard]] std::vector<PairElements> pairs_of(const StepTransfers& transfers,
                                                 const HeldBoxes& before, const HeldBoxes& after);
// What an exchange moves, without making its transfers; it has no far share, chunks or laps.
//
// In one phase: calls use(ranks that receive the same), replay ranks in place of indices; each pair
// once. Law: those of pairs_of.
[[nodiscard]] Status for_each_received(const TransferQuestion& question,
                                       const std::function<void(const ReceivedAlike&)>& use);
// In two; pairs may be there several times. Law: `fetched` is pairs_of phase 1 in part_of_phase,
// the others those of phase 2 (both: tests/transfer/exchange_pairs_test.cc).
struct PhasePairs {
  std::vector<PairElements> fetched;
  std::vector<PairElements> from_sources;  // inside of units
  std::vector<PairElements> passed_on;     // of what was fetched
};
[[nodiscard]] Result<PhasePairs> pairs_in_two_phases(const TransferQuestion& question);

// The part of a length that so many pieces from `piece` on have together, remembered: the lengths
// of a step are few.
class PartOfLength {
 public:
  PartOfLength(int64_t piece, int64_t pieces, int64_t count)
      : piece_(piece), pieces_(pieces), count_(count) {}
  [[nodiscard]] const Interval& of(int64_t length) {
    if (length != length_) turn_to(length);
    return part_;
  }

 private:
  void turn_to(int64_t length);

  int64_t piece_;
  int64_t pieces_;
  int64_t count_;
  int64_t length_ = -1;  // that was asked for last
  Interval part_;
  std::vector<std::pair<int64_t, Interval>> parts_;  // of each length asked for so far
};

// What so many pieces from `piece` on move together, sender by sender; the cuts stay where they
// are, and nothing is listed. Law: the sum over these pieces.
class PieceReader {
 public:
  PieceReader(const std::vector<StepCut>& cuts, int64_t piece, int64_t pieces, int64_t count = 1)
      : next_(cuts.data()), end_(cuts.data() + cuts.size()), part_(piece, pieces, count) {}

  // Of those whose cuts were not read yet; -1: there is no other.
  [[nodiscard]] int32_t next_sender() const { return next_ == end_ ? -1 : next_->from; }
  // Calls use(receiver, elements) for each of its cuts that the pieces have part of, by receiver,
  // of which one may be there several times.
  template <class Use>
  void read_sender(Use&& use) {
    for (const int32_t from = next_->from; next_ != end_ && next_->from == from; ++next_) {
      const int64_t slices = overlap_width({next_->lo, next_->hi}, part_.of(next_->length));
      if (slices > 0) use(next_->to, saturating_mul(slices, next_->slice));
    }
  }

 private:
  const StepCut* next_;
  const StepCut* end_;
  PartOfLength part_;
};
// Of each pair of ranks that the cuts have, by sender, then receiver, whether the pieces move
// anything between them.
[[nodiscard]] std::vector<bool> pairs_in_pieces(const std::vector<StepCut>& cuts, int64_t piece,
                                                int64_t pieces, int64_t count);

}  // namespace meshplan
