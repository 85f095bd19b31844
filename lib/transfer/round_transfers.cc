#include "transfer/round_transfers.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"

namespace meshplan {

int64_t wire_element_bytes(const PlannedRedistribution& r, size_t step) {
  const Step& s = r.steps[step];
  const bool wide = s.reduce_op && !is_local(s.op) && r.request.reduce_dtype;
  return element_bytes(wide ? *r.request.reduce_dtype : r.request.tensor.dtype);
}

bool is_in_no_round(const Step& step) {
  if (is_local(step.op)) return true;
  return is_collective(step.op) &&
         std::all_of(step.mesh_dims.begin(), step.mesh_dims.end(),
                     [](const SubAxis& sub_axis) { return sub_axis.size == 1; });
}

std::vector<size_t> packing_order(const Plan& plan, const BundleRound& round) {
  std::vector<size_t> order(round.parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto width_of = [&](size_t at) {
    const RoundPart& part = round.parts[at];
    return wire_element_bytes(plan.redistributions[part.member], static_cast<size_t>(part.step));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return width_of(a) > width_of(b); });
  return order;
}

std::vector<const Transfer*> in_message_order(const SlotTransfers& slot, const HeldBoxes& before,
                                              const HeldBoxes& after) {
  std::vector<const Transfer*> sorted;
  for (const Transfer& t : slot.transfers) {
    if (volume(t.box) > 0) sorted.push_back(&t);
  }
  const auto rank_of = [&](const Transfer* t) { return sender_rank(*t, before, after); };
  std::sort(sorted.begin(), sorted.end(), [&](const Transfer* a, const Transfer* b) {
    if (a->contribution != b->contribution) return a->contribution < b->contribution;
    if (rank_of(a) != rank_of(b)) return rank_of(a) < rank_of(b);
    return corner_of(a->box) < corner_of(b->box);
  });
  return sorted;
}

size_t first_local_before(const PlannedRedistribution& r, size_t step) {
  while (step > 0 && is_in_no_round(r.steps[step - 1])) --step;
  return step;
}

size_t first_local_at_end(const PlannedRedistribution& r) {
  return first_local_before(r, r.steps.size());
}

const std::vector<HeldBoxes>& MemberTransfers::held(size_t member) {
  if (const auto known = held_.find(member); known != held_.end()) return known->second;
  if (held_.size() >= most_held) held_.clear();
  return held_.emplace(member, held_of_(member)).first->second;
}

void MemberTransfers::keep(const Key& key, const std::shared_ptr<const StepTransfers>& made) {
  size_t boxes = 0;
  for (const SlotTransfers& slot : made->slots) boxes += slot.transfers.size() + 1;
  if (kept_boxes_ + boxes > most_boxes) {
    made_.clear();
    kept_boxes_ = 0;
  }
  kept_boxes_ += boxes;
  made_[key] = made;
}

Result<std::shared_ptr<const StepTransfers>> MemberTransfers::of_step(size_t member, size_t step,
                                                                      const std::string& place) {
  const Key key{member, step, 0, 1};
  if (const auto known = made_.find(key); known != made_.end()) return known->second;
  const std::vector<HeldBoxes>& boxes = held(member);
  auto made =
      make_transfers({&boxes[step], &boxes[step + 1], &plan_.redistributions[member].steps[step],
                      &ranks_, &plan_.topology, place});
  if (!made) return made.error();
  const auto shared = std::make_shared<const StepTransfers>(std::move(*made));
  keep(key, shared);
  return shared;
}

// What ranks got in the step before `step`, in which pieces.
Result<std::shared_ptr<const GotBoxes>> MemberTransfers::got_before(size_t member, size_t step,
                                                                    const std::string& place) {
  const auto key = std::pair(member, step);
  if (const auto known = got_.find(key); known != got_.end()) return known->second;
  const auto first = of_step(member, 0, place);
  if (!first) return first.error();
  GotBoxes got = got_in_first(piece_cut(plan_.redistributions[member]), **first);
  for (size_t s = 1; s < step; ++s) {
    const auto next = of_step(member, s, place);
    if (!next) return next.error();
    got = got_in_next(got, **next);
  }
  // What they hold is of the size of the steps: only the last is kept.
  got_.clear();
  return got_[key] = std::make_shared<const GotBoxes>(std::move(got));
}

// Of an exchange in two phases behind steps that go in pieces.
Result<StepTransfers> MemberTransfers::piece_of_phase(const RoundPart& part,
                                                      const StepTransfers& whole,
                                                      const std::string& place) {
  const auto got = got_before(part.member, static_cast<size_t>(part.step), place);
  if (!got) return got.error();
  const int64_t piece = floor_div(part.piece, 2);
  const int64_t pieces = floor_div(part.pieces, 2);
  const StepTransfers fetching = phase_as_step(whole, 1);
  if (part.piece % 2 == 0) return piece_of_next(**got, fetching, piece, pieces);
  return piece_of_next(got_in_next(**got, fetching), phase_as_step(whole, 2), piece, pieces);
}

Result<std::shared_ptr<const StepTransfers>> MemberTransfers::of_part(const RoundPart& part,
                                                                      const std::string& place) {
  const PlannedRedistribution& r = plan_.redistributions[part.member];
  const auto step = static_cast<size_t>(part.step);
  const Key key{part.member, step, part.piece, part.pieces};
  if (const auto known = made_.find(key); known != made_.end()) return known->second;
  if (is_in_no_round(r.steps[step]))
    return wrong_data(place + ": a local step is in a round, and needs none");
  if (r.steps[step].far_64ths > 0)
    return wrong_data(place + ": an exchange is in a round, and has a far share");
  const bool two_phases = r.steps[step].phases > 1;
  if (two_phases) {
    const bool is_cut = part.pieces > 2;
    if (part.pieces % 2 != 0 || (is_cut && r.request.tensor.shape.empty()))
      return wrong_data(place + ": an exchange in two phases goes in an even number of pieces");
    if (r.steps[step].fetched_by_all)
      return wrong_data(place + ": an exchange in two phases is in a round, and fetched by all");
    if (r.steps[step].laps > 1)
      return wrong_data(place + ": an exchange in two phases is in a round, and in laps");
    if (r.steps[step].chunks > 1)
      return wrong_data(place + ": an exchange in two phases is in a round, and in chunks");
  } else if (part.pieces > 1 && !goes_in_pieces(r, step)) {
    return wrong_data(place + ": the step goes in no pieces");
  }
  auto whole = of_step(part.member, step, place);
  if (!whole || part.pieces == 1) return whole;
  std::shared_ptr<const StepTransfers> made;
  if (two_phases && phases_go_in_pieces(r, step)) {
    auto phase = piece_of_phase(part, **whole, place);
    if (!phase) return phase.error();
    made = std::make_shared<const StepTransfers>(std::move(*phase));
  } else if (two_phases) {
    made = std::make_shared<const StepTransfers>(part_of_phase(
        **whole, part.piece % 2 == 0 ? 1 : 2, floor_div(part.piece, 2), floor_div(part.pieces, 2)));
  } else if (step == 0) {
    made = std::make_shared<const StepTransfers>(
        piece_of_first(piece_cut(r), **whole, part.piece, part.pieces));
  } else {
    const auto before = got_before(part.member, step, place);
    if (!before) return before.error();
    made = std::make_shared<const StepTransfers>(
        piece_of_next(**before, **whole, part.piece, part.pieces));
  }
  keep(key, made);
  return made;
}

}  // namespace meshplan
