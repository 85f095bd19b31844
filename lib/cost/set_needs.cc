#include "cost/set_needs.h"

#include <algorithm>

namespace meshplan {

SetNeeds::SetNeeds(const Participants& all)
    : all_(&all),
      holders_(all.held.count() * all.contributions),
      contributions_(all.held.count()),
      alone_(all.held.count()),
      cell_ranks_(std::ssize(all.wanted.of_ranks())),
      cells_(all.wanted.count()),
      whole_cells_(all.wanted.count()),
      wanting_(static_cast<size_t>(all.wanted.count()), 0) {}

SetNeed SetNeeds::of(std::span<const int32_t> members) {
  const Participants& all = *all_;
  ++set_;
  for (auto* list : {&held_, &sole_, &met_, &wanted_}) list->clear();
  SetNeed need;
  for (const int32_t member : members) {
    const RankBoxes& rank = all.ranks[member];
    if (rank.held >= 0 && all.held.volume(rank.held) > 0) {
      const auto box = static_cast<size_t>(rank.held);
      const int64_t holders = holders_.add(set_, box * static_cast<size_t>(all.contributions) +
                                                     static_cast<size_t>(rank.contribution));
      if (holders == 1) {
        const int64_t contributions = contributions_.add(set_, box);
        need.contributions = std::max(need.contributions, contributions);
        if (contributions == all.contributions) held_.push_back(rank.held);
      }
      if (holders == all.holders && alone_.add(set_, box) == 1) sole_.push_back(rank.held);
      need.holds = true;
    }
    if (rank.wanted >= 0 && all.wanted.volume(rank.wanted) > 0) {
      const auto box = static_cast<size_t>(rank.wanted);
      const int64_t ranks = cell_ranks_.add(set_, static_cast<size_t>(rank.cell));
      if (ranks == 1 && cells_.add(set_, box) == all.cells) met_.push_back(rank.wanted);
      if (ranks == all.cell_ranks && whole_cells_.add(set_, box) == 1)
        wanted_.push_back(rank.wanted);
    }
  }
  need.wants = !wanted_.empty();
  for (const int32_t box : wanted_) {
    need.in += all.wanted.volume(box);
    ++wanting_[box];
  }
  if (!wanted_.empty() && !held_.empty())
    need.in -= std::min(need.in, shared_elements(all.wanted, wanted_, all.held, held_));
  for (const int32_t box : sole_) need.out += all.held.volume(box);
  if (!sole_.empty() && !met_.empty())
    need.out -= std::min(need.out, shared_elements(all.held, sole_, all.wanted, met_));
  return need;
}

SetNeed SetNeeds::of_rank(int32_t member) {
  const Participants& all = *all_;
  const RankBoxes& rank = all.ranks[member];
  const int64_t held = rank.held >= 0 ? all.held.volume(rank.held) : 0;
  const int64_t wanted = rank.wanted >= 0 ? all.wanted.volume(rank.wanted) : 0;
  SetNeed need;
  need.holds = held > 0;
  need.contributions = need.holds ? 1 : 0;
  need.wants = wanted > 0 && all.cell_ranks == 1;
  if (need.wants) ++wanting_[rank.wanted];
  if (need.wants) need.in = wanted;
  if (need.holds && all.holders == 1) need.out = held;
  if (need.holds && wanted > 0 && need.in + need.out > 0) {
    const int64_t both = shared_elements(all.held, rank.held, all.wanted, rank.wanted);
    if (all.contributions == 1) need.in -= std::min(need.in, both);
    if (all.cells == 1) need.out -= std::min(need.out, both);
  }
  return need;
}

std::vector<int64_t> SetNeeds::take_wanting() {
  std::vector<int64_t> taken(wanting_.size(), 0);
  taken.swap(wanting_);
  return taken;
}

}  // namespace meshplan
