// all_gather, all_to_all, all_reduce and reduce_scatter.
#include <algorithm>
#include <set>

#include "transfer/transfer_maker.h"

namespace meshplan {
namespace {

// Of slots of one group, the first with each distinct box that is not empty. The boxes of a group
// are equal or disjoint, so the lower corner names them.
std::vector<int32_t> first_holders(const HeldBoxes& held, const std::vector<int32_t>& slots) {
  std::vector<int32_t> first;
  std::set<std::vector<int64_t>> seen;
  for (int32_t s : slots) {
    const Box& box = box_of_slot(held, s);
    if (volume(box) == 0) continue;
    std::vector<int64_t> corner;
    for (const Interval& i : box) corner.push_back(i.lo);
    if (seen.insert(std::move(corner)).second) first.push_back(s);
  }
  return first;
}

}  // namespace

std::pair<size_t, size_t> TransferMaker::asked(size_t slot,
                                               const std::vector<int32_t>& slots) const {
  if (!q_.only || after_.ranks[slot] == *q_.only) return {0, slots.size()};
  const auto rank_of = [&](int32_t s) { return before_.ranks[static_cast<size_t>(s)]; };
  const auto at = std::lower_bound(slots.begin(), slots.end(), *q_.only,
                                   [&](int32_t s, int32_t rank) { return rank_of(s) < rank; });
  const auto begin = static_cast<size_t>(at - slots.begin());
  return {begin, begin + (at != slots.end() && rank_of(*at) == *q_.only ? 1 : 0)};
}

std::unordered_map<int64_t, TransferMaker::Group> TransferMaker::groups(
    const CoordinatesOn& free) const {
  std::optional<int64_t> asked;
  if (q_.only) {
    const auto at = std::find(before_.ranks.begin(), before_.ranks.end(), *q_.only);
    if (at == before_.ranks.end()) return {};
    asked = key_of(before_, at - before_.ranks.begin(), free);
  }
  std::unordered_map<int64_t, std::vector<int32_t>> slots;
  for (size_t s = 0; s < before_.ranks.size(); ++s) {
    const int64_t key = key_of(before_, static_cast<int64_t>(s), free);
    if (!asked || key == *asked) slots[key].push_back(static_cast<int32_t>(s));
  }
  std::unordered_map<int64_t, Group> out;
  for (auto& [key, members] : slots) {
    sort_by_rank(members);
    out.emplace(key, std::make_shared<const std::vector<int32_t>>(std::move(members)));
  }
  return out;
}

// all_gather, all_to_all: a rank keeps what it holds of its new box, and the rest comes from the
// group's first holder of each part.
Status TransferMaker::make_movement() {
  const CoordinatesOn free(sub_axes_.talking, before_.mesh_shape);
  const auto members = groups(free);
  std::unordered_map<int64_t, std::vector<int32_t>> holders;
  for (const auto& [key, slots] : members) holders[key] = first_holders(before_, *slots);
  for (size_t s = 0; s < out_.slots.size(); ++s) {
    const int64_t key = key_of(after_, static_cast<int64_t>(s), free);
    const auto group = members.find(key);
    if (group == members.end()) continue;
    out_.slots[s].group = group->second;
    if (auto done = move_to(s, holders.at(key)); !done) return done;
  }
  return Done{};
}

Status TransferMaker::move_to(size_t s, const std::vector<int32_t>& holders) {
  SlotTransfers& slot = out_.slots[s];
  const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
  if (volume(want) == 0) return Done{};
  const Box& own = box_of_slot(before_, slot.self);
  int64_t covered = 0;
  const auto [begin, end] = asked(s, holders);
  for (size_t i = begin; i < end; ++i) {
    const int32_t h = holders[i];
    const Box& held = box_of_slot(before_, h);
    Box part = intersect(held, want);
    const int64_t n = volume(part);
    if (n == 0) continue;
    covered += n;
    slot.transfers.push_back({held == own ? slot.self : h, 0, false, std::move(part)});
  }
  if (end - begin == holders.size() && covered != volume(want)) {
    return missing(s, slot.transfers,
                   "no rank of its group of " + std::to_string(slot.group->size()) + " holds it");
  }
  return Done{};
}

// all_reduce, reduce_scatter: one contribution for each coordinate on the reduced sub-axes, each
// from the rank that differs on nothing else.
Status TransferMaker::make_reduction() {
  const CoordinatesOn reduced(sub_axes_.reduced, before_.mesh_shape);
  const auto members = groups(reduced);
  for (size_t s = 0; s < out_.slots.size(); ++s) {
    const auto group = members.find(key_of(after_, static_cast<int64_t>(s), reduced));
    if (group == members.end()) continue;
    out_.slots[s].group = group->second;
    if (auto done = reduce_to(s); !done) return done;
  }
  return Done{};
}

Status TransferMaker::reduce_to(size_t s) {
  SlotTransfers& slot = out_.slots[s];
  const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
  const Box& own = box_of_slot(before_, slot.self);
  if (step_.op == Op::all_reduce && !same_elements(want, own)) {
    return fail("all_reduce changes the box of rank " + std::to_string(global_id(after_.ranks[s])) +
                " from " + to_text(own) + " to " + to_text(want));
  }
  if (volume(want) == 0) return Done{};
  const auto [begin, end] = asked(s, *slot.group);
  for (size_t i = begin; i < end; ++i) {
    const int32_t h = (*slot.group)[i];
    Box part = intersect(box_of_slot(before_, h), want);
    if (volume(part) != volume(want)) {
      const int64_t id = global_id(before_.ranks[static_cast<size_t>(h)]);
      return missing(s, {{h, 0, false, part}},
                     "rank " + std::to_string(id) + " does not hold its contribution");
    }
    slot.transfers.push_back({h, static_cast<int32_t>(i), false, std::move(part)});
  }
  return Done{};
}

}  // namespace meshplan
