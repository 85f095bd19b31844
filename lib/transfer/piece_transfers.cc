#include "transfer/piece_transfers.h"

#include <algorithm>

#include "transfer/exchange_cut.h"

namespace meshplan {

bool goes_in_pieces(const PlannedRedistribution& redistribution, size_t step) {
  if (redistribution.request.tensor.shape.empty() || step >= redistribution.steps.size())
    return false;
  for (size_t s = 0; s <= step; ++s) {
    const Step& exchange = redistribution.steps[s];
    if (exchange.op != Op::exchange || exchange.phases != 1 || exchange.reduce_op) return false;
  }
  return true;
}

PieceCut piece_cut(const PlannedRedistribution& redistribution) {
  const auto& steps = redistribution.steps;
  std::vector<size_t> left(redistribution.request.tensor.shape.size(), 0);  // steps in a row
  size_t later = 0;
  for (; goes_in_pieces(redistribution, later + 1); ++later) {
    for (size_t d = 0; d < left.size(); ++d) {
      if (left[d] == later && steps[later + 1].state.shards[d] == steps[0].state.shards[d])
        left[d] = later + 1;
    }
  }
  size_t most = 0;
  for (const size_t steps_left : left) most = std::max(most, steps_left);
  PieceCut cut;
  for (const size_t steps_left : left)
    cut.steady.push_back(steps_left == most && (most > 0 || later == 0));
  return cut;
}

int piece_dim(const PieceCut& cut, const Box& box) {
  int longest = -1;
  int steady = -1;
  const auto wider = [&](size_t d, int than) {
    return than < 0 || width(box[d]) > width(box[static_cast<size_t>(than)]);
  };
  for (size_t d = 0; d < box.size(); ++d) {
    if (wider(d, longest)) longest = static_cast<int>(d);
    if (cut.steady[d] && wider(d, steady)) steady = static_cast<int>(d);
  }
  const bool enough = steady >= 0 && width(box[static_cast<size_t>(steady)]) >= least_steady;
  return enough ? steady : longest;
}

GotBoxes got_in_first(const PieceCut& cut, const StepTransfers& first) {
  GotBoxes got(first.slots.size());
  for (size_t slot = 0; slot < got.size(); ++slot) {
    for (const Transfer& t : first.slots[slot].transfers)
      got[slot].push_back({t.box, piece_dim(cut, t.box), t.box});
  }
  return got;
}

GotBoxes got_in_next(const GotBoxes& before, const StepTransfers& step) {
  GotBoxes got(step.slots.size());
  for (size_t slot = 0; slot < got.size(); ++slot) {
    for (const Transfer& t : step.slots[slot].transfers) {
      for (const GotBox& sent : before[static_cast<size_t>(t.from)]) {
        Box box = intersect(t.box, sent.box);
        if (volume(box) > 0) got[slot].push_back({sent.cut, sent.dim, std::move(box)});
      }
    }
  }
  return got;
}

StepTransfers piece_of_first(const PieceCut& cut, const StepTransfers& first, int64_t piece,
                             int64_t pieces) {
  StepTransfers result = first;
  if (pieces == 1) return result;
  for (SlotTransfers& slot : result.slots) {
    for (Transfer& t : slot.transfers)
      t.box = part_along(t.box, piece_dim(cut, t.box), pieces, piece);
    std::erase_if(slot.transfers, [](const Transfer& t) { return volume(t.box) == 0; });
  }
  return result;
}

StepTransfers piece_of_next(const GotBoxes& before, const StepTransfers& step, int64_t piece,
                            int64_t pieces) {
  StepTransfers result = step;
  if (pieces == 1) return result;
  for (SlotTransfers& slot : result.slots) {
    std::vector<Transfer> whole;
    whole.swap(slot.transfers);
    for (const Transfer& t : whole) {
      for (const GotBox& sent : before[static_cast<size_t>(t.from)]) {
        Transfer part = t;
        part.box =
            intersect(t.box, intersect(sent.box, part_along(sent.cut, sent.dim, pieces, piece)));
        if (volume(part.box) > 0) slot.transfers.push_back(std::move(part));
      }
    }
  }
  return result;
}

StepTransfers phase_as_step(const StepTransfers& step, int phase) {
  StepTransfers result = part_of_phase(step, phase, 0, 1);
  if (phase == 2) {
    for (SlotTransfers& slot : result.slots)
      std::erase_if(slot.transfers, [](const Transfer& t) { return !t.fetched; });
    return result;
  }
  for (size_t slot = 0; slot < step.slots.size(); ++slot) {
    for (const Transfer& t : step.slots[slot].transfers) {
      if (!t.fetched) result.slots[slot].transfers.push_back(t);
    }
  }
  return result;
}

bool phases_go_in_pieces(const PlannedRedistribution& redistribution, size_t step) {
  const auto& steps = redistribution.steps;
  return step > 0 && step < steps.size() && steps[step].phases == 2 &&
         goes_in_pieces(redistribution, step - 1);
}

StepTransfers part_of_phase(const StepTransfers& step, int phase, int64_t part, int64_t parts) {
  StepTransfers result = step;
  result.first_phase.clear();
  for (SlotTransfers& slot : result.slots) slot.transfers.clear();
  const auto add = [&](size_t slot, Transfer t) {
    if (parts > 1) t.box = even_part(t.box, parts, part);
    if (volume(t.box) > 0) result.slots[slot].transfers.push_back(std::move(t));
  };
  if (phase == 1) {
    for (const FirstTransfer& f : step.first_phase)
      add(static_cast<size_t>(f.to), {f.from, 0, false, f.box});
    return result;
  }
  for (size_t slot = 0; slot < step.slots.size(); ++slot) {
    for (const Transfer& t : step.slots[slot].transfers) {
      // What it fetched itself is in its place.
      if (!t.fetched || static_cast<size_t>(t.from) != slot) add(slot, t);
    }
  }
  return result;
}

}  // namespace meshplan
