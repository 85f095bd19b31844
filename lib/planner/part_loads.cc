#include "planner/part_loads.h"

#include <algorithm>
#include <utility>

#include "transfer/step_cuts.h"

namespace meshplan {

void PartLoads::add(const Part& part, int64_t tensors) {
  looked_at_ += std::ssize(part.moved->cuts);
  counter_.add({part.moved->cuts, part.what.piece, part.what.pieces, part.what.count},
               part.moved->element_bytes, tensors);
}

const PartLoads::Known& PartLoads::known(const Part& part) {
  const auto at = known_.find(part.what);
  if (at != known_.end()) return at->second;
  add(part, 1);
  Known made{counter_.take(), 0};
  const Pieces& what = part.what;
  std::vector<std::vector<bool>>& sets = pair_sets_[{what.kind, what.way, what.step}];
  std::vector<bool> pairs = pairs_in_pieces(part.moved->cuts, what.piece, what.pieces, what.count);
  const auto same = std::find(sets.begin(), sets.end(), pairs);
  made.pairs_as = static_cast<size_t>(same - sets.begin());
  if (same == sets.end()) sets.push_back(std::move(pairs));
  return known_.emplace(what, std::move(made)).first->second;
}

// Where few pairs are in a part there is nothing to gain.
RoundLoad PartLoads::load_of(const std::vector<Part>& parts) {
  size_t cuts = 0;
  for (const Part& part : parts) cuts += part.moved->cuts.size();
  if (parts.size() == 1 || cuts < cells() * parts.size()) {
    for (const Part& part : parts) add(part, part.tensors);
    return counter_.take();
  }
  limit_memory(parts.size());
  looked_at_ += static_cast<int64_t>(parts.size() * cells() / cells_a_cut);
  RoundLoad load(counter_.ranks(), counter_.levels());
  PairSets sets;
  std::vector<const Part*> of_sets;  // one part of each
  for (const Part& part : parts) {
    const Known& of_part = known(part);
    load.add_bytes(of_part.load, part.tensors);
    const Step step{part.what.kind, part.what.way, part.what.step};
    if (sets.emplace(step, of_part.pairs_as).second) of_sets.push_back(&part);
  }
  auto peers = peers_.find(sets);
  if (peers == peers_.end()) {
    for (const Part* part : of_sets) add(*part, 1);
    peers = peers_.emplace(std::move(sets), counter_.take()).first;
  }
  load.set_peers(peers->second);
  return load;
}

// Room for so many parts more.
void PartLoads::limit_memory(size_t parts) {
  if ((known_.size() + peers_.size() + parts + 1) * cells() <= most_kept) return;
  known_.clear();
  pair_sets_.clear();
  peers_.clear();
}

}  // namespace meshplan
