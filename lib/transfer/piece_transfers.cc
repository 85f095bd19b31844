#include "transfer/piece_transfers.h"

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

GotBoxes got_in_first(const StepTransfers& first) {
  GotBoxes got(first.slots.size());
  for (size_t slot = 0; slot < got.size(); ++slot) {
    for (const Transfer& t : first.slots[slot].transfers) got[slot].push_back({t.box, t.box});
  }
  return got;
}

GotBoxes got_in_next(const GotBoxes& before, const StepTransfers& step) {
  GotBoxes got(step.slots.size());
  for (size_t slot = 0; slot < got.size(); ++slot) {
    for (const Transfer& t : step.slots[slot].transfers) {
      for (const GotBox& sent : before[static_cast<size_t>(t.from)]) {
        Box box = intersect(t.box, sent.box);
        if (volume(box) > 0) got[slot].push_back({sent.cut, std::move(box)});
      }
    }
  }
  return got;
}

StepTransfers piece_of_first(const StepTransfers& first, int64_t piece, int64_t pieces) {
  StepTransfers result = first;
  if (pieces == 1) return result;
  for (SlotTransfers& slot : result.slots) {
    for (Transfer& t : slot.transfers) t.box = even_part(t.box, pieces, piece);
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
        part.box = intersect(t.box, intersect(sent.box, even_part(sent.cut, pieces, piece)));
        if (volume(part.box) > 0) slot.transfers.push_back(std::move(part));
      }
    }
  }
  return result;
}

}  // namespace meshplan
