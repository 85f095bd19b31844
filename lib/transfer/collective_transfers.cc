// all_gather, all_to_all, all_reduce and reduce_scatter.
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

std::unordered_map<int64_t, std::vector<int32_t>> TransferMaker::groups(
    const CoordinatesOn& free) const {
  std::unordered_map<int64_t, std::vector<int32_t>> out;
  for (size_t s = 0; s < before_.ranks.size(); ++s)
    out[key_of(before_, static_cast<int64_t>(s), free)].push_back(static_cast<int32_t>(s));
  for (auto& [key, slots] : out) sort_by_rank(slots);
  return out;
}

// all_gather, all_to_all: a rank keeps what it holds of its new box, and the rest comes from the
// group's first holder of each part.
Status TransferMaker::make_movement() {
  const CoordinatesOn free(sub_axes_.talking, before_.mesh_shape);
  const auto members = groups(free);
  std::unordered_map<int64_t, std::vector<int32_t>> holders;
  for (const auto& [key, slots] : members) holders[key] = first_holders(before_, slots);
  for (size_t s = 0; s < out_.slots.size(); ++s) {
    SlotTransfers& slot = out_.slots[s];
    const int64_t key = key_of(after_, static_cast<int64_t>(s), free);
    slot.group = members.at(key);
    const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
    if (volume(want) == 0) continue;
    const Box& own = box_of_slot(before_, slot.self);
    int64_t covered = 0;
    for (int32_t h : holders.at(key)) {
      const Box& held = box_of_slot(before_, h);
      Box part = intersect(held, want);
      const int64_t n = volume(part);
      if (n == 0) continue;
      covered += n;
      slot.transfers.push_back({held == own ? slot.self : h, 0, false, std::move(part)});
    }
    if (covered != volume(want)) {
      return missing(s, slot.transfers,
                     "no rank of its group of " + std::to_string(slot.group.size()) + " holds it");
    }
  }
  return Done{};
}

// all_reduce, reduce_scatter: one contribution for each coordinate on the reduced sub-axes, each
// from the rank that differs on nothing else.
Status TransferMaker::make_reduction() {
  const CoordinatesOn reduced(sub_axes_.reduced, before_.mesh_shape);
  const auto members = groups(reduced);
  for (size_t s = 0; s < out_.slots.size(); ++s) {
    SlotTransfers& slot = out_.slots[s];
    slot.group = members.at(key_of(after_, static_cast<int64_t>(s), reduced));
    const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
    const Box& own = box_of_slot(before_, slot.self);
    if (step_.op == Op::all_reduce && !same_elements(want, own)) {
      return fail("all_reduce changes the box of rank " +
                  std::to_string(global_id(after_.ranks[s])) + " from " + to_text(own) + " to " +
                  to_text(want));
    }
    if (volume(want) == 0) continue;
    int32_t contribution = 0;
    for (int32_t h : slot.group) {
      Box part = intersect(box_of_slot(before_, h), want);
      if (volume(part) != volume(want)) {
        const int64_t id = global_id(before_.ranks[static_cast<size_t>(h)]);
        return missing(s, {{h, 0, false, part}},
                       "rank " + std::to_string(id) + " does not hold its contribution");
      }
      slot.transfers.push_back({h, contribution++, false, std::move(part)});
    }
  }
  return Done{};
}

}  // namespace meshplan
