#include "replay/local_chain.h"

#include <utility>

namespace meshplan {
namespace {

// Every box cut by each of the parts that a step keeps of it.
std::vector<Box> cut_by(const std::vector<Transfer>& parts, const std::vector<Box>& boxes) {
  std::vector<Box> cut;
  for (const Box& box : boxes) {
    for (const Transfer& part : parts) {
      Box both = intersect(box, part.box);
      if (volume(both) > 0) cut.push_back(std::move(both));
    }
  }
  return cut;
}

// One step more.
ChainedBox behind(const ChainedBox& so_far, const StepTransfers& step, const SlotTransfers& own) {
  ChainedBox next{so_far.from, so_far.identity, cut_by(own.transfers, so_far.kept)};
  if (own.identity) next.identity = step.reduce_op.value_or(ReduceOp::sum);
  return next;
}

}  // namespace

std::vector<ChainedBox> chain_of(const std::vector<std::shared_ptr<const StepTransfers>>& steps,
                                 const HeldBoxes& before) {
  std::vector<ChainedBox> chain(before.ranks.size());
  for (size_t s = 0; s < chain.size(); ++s) {
    chain[s].from = static_cast<int32_t>(s);
    chain[s].kept = {box_of_slot(before, static_cast<int64_t>(s))};
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<ChainedBox> next(steps[i]->slots.size());
    for (size_t s = 0; s < next.size(); ++s) {
      const int32_t self = steps[i]->slots[s].self;
      next[s] = behind(self < 0 ? ChainedBox{} : chain[static_cast<size_t>(self)], *steps[i],
                       steps[i]->slots[s]);
    }
    chain = std::move(next);
  }
  return chain;
}

}  // namespace meshplan
