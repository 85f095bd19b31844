// The transfers of the parts of a bundle's rounds (plan/bundle.h), and their places in messages.
//
//     round 0   parts w1 (bfloat16) tensors [0:2], w2 (float32)
//     message 0 -> 3   [w2 box] [w1 tensor 0 box] [w1 tensor 1 box]      widest elements first
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "transfer/held_boxes.h"
#include "transfer/piece_transfers.h"

namespace meshplan {

// Bytes of an element of a step on the wire: its reduction may run in another dtype.
[[nodiscard]] int64_t wire_element_bytes(const PlannedRedistribution& redistribution, size_t step);

// Whether a step is local to every rank: a slice, a fill, a collective in groups of one rank.
[[nodiscard]] bool is_in_no_round(const Step& step);

// The parts of a round in the order in which a message carries their boxes.
[[nodiscard]] std::vector<size_t> packing_order(const Plan& plan, const BundleRound& round);

// The boxes of a slot in the order in which messages carry them: by contribution, sender and lower
// corner. Empty ones are left out.
[[nodiscard]] std::vector<const Transfer*> in_message_order(const SlotTransfers& slot,
                                                            const HeldBoxes& before,
                                                            const HeldBoxes& after);

// The first of the local steps that run with step `step`, which is none itself: all right before
// it. `step` where there are none.
[[nodiscard]] size_t first_local_before(const PlannedRedistribution& redistribution, size_t step);
// The first of the local steps behind the last other step; the number of steps where there are
// none.
[[nodiscard]] size_t first_local_at_end(const PlannedRedistribution& redistribution);

// The transfers of steps and of pieces of steps of members, each made once and kept while it is
// among the last ones asked for.
class MemberTransfers {
 public:
  // `held`: what ranks hold before the first step of a member and after each, by index of the
  // redistribution.
  using HeldOf = std::function<std::vector<HeldBoxes>(size_t member)>;
  MemberTransfers(const Plan& plan, const RankTable& ranks, HeldOf held)
      : plan_(plan), ranks_(ranks), held_of_(std::move(held)) {}

  // Valid until another member is asked for.
  [[nodiscard]] const std::vector<HeldBoxes>& held(size_t member);
  // Of the whole step. `place` starts errors.
  [[nodiscard]] Result<std::shared_ptr<const StepTransfers>> of_step(size_t member, size_t step,
                                                                     const std::string& place);
  // Of the part's piece. Refuses what no round runs: local steps, pieces of steps that go in none,
  // exchanges in two phases in one piece.
  [[nodiscard]] Result<std::shared_ptr<const StepTransfers>> of_part(const RoundPart& part,
                                                                     const std::string& place);

 private:
  using Key = std::tuple<size_t, size_t, int64_t, int64_t>;  // member, step, piece, pieces
  static constexpr size_t most_boxes = 400'000;              // of all that is kept: some 60 MB
  static constexpr size_t most_held = 64;                    // members
  Result<std::shared_ptr<const GotBoxes>> got_before(size_t member, size_t step,
                                                     const std::string& place);
  Result<StepTransfers> piece_of_phase(const RoundPart& part, const StepTransfers& whole,
                                       const std::string& place);
  void keep(const Key& key, const std::shared_ptr<const StepTransfers>& made);

  const Plan& plan_;
  const RankTable& ranks_;
  HeldOf held_of_;
  std::map<size_t, std::vector<HeldBoxes>> held_;
  std::map<Key, std::shared_ptr<const StepTransfers>> made_;
  size_t kept_boxes_ = 0;
  std::map<std::pair<size_t, size_t>, std::shared_ptr<const GotBoxes>> got_;  // by member and step
};

}  // namespace meshplan
