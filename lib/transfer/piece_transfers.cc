#include "transfer/piece_transfers.h"

#include "transfer/exchange_cut.h"

namespace meshplan {

bool goes_in_pieces(const PlannedRedistribution& redistribution, size_t step) {
  const auto in_one_phase = [&](size_t s) {
    const Step& exchange = redistribution.steps[s];
    return exchange.op == Op::exchange && exchange.phases == 1 && !exchange.reduce_op;
  };
  return !redistribution.request.tensor.shape.empty() && step < redistribution.steps.size() &&
         step < 2 && in_one_phase(0) && in_one_phase(step);
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

StepTransfers piece_of_second(const StepTransfers& first, const StepTransfers& second,
                              int64_t piece, int64_t pieces) {
  StepTransfers result = second;
  if (pieces == 1) return result;
  // By slot between the steps: the boxes that it got in this piece.
  std::vector<std::vector<Box>> got(first.slots.size());
  for (size_t slot = 0; slot < got.size(); ++slot) {
    for (const Transfer& t : first.slots[slot].transfers) {
      Box part = even_part(t.box, pieces, piece);
      if (volume(part) > 0) got[slot].push_back(std::move(part));
    }
  }
  for (SlotTransfers& slot : result.slots) {
    std::vector<Transfer> whole;
    whole.swap(slot.transfers);
    for (const Transfer& t : whole) {
      for (const Box& box : got[static_cast<size_t>(t.from)]) {
        Transfer part = t;
        part.box = intersect(t.box, box);
        if (volume(part.box) > 0) slot.transfers.push_back(std::move(part));
      }
    }
  }
  return result;
}

}  // namespace meshplan
