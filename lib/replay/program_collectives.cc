#include <algorithm>

#include "replay/program_maker.h"

namespace meshplan {

Status ProgramMaker::make_all_gather() {
  std::vector<RankCall> calls;
  std::vector<std::pair<size_t, std::vector<std::byte*>>> staged;  // slot, where each member's box arrives
  auto status = for_each_member([&](size_t s, const SlotFlow& slot, const std::vector<int32_t>* group) -> Status {
    RankCall call;
    call.rank = after_.ranks[s];
    call.group = group;
    const auto self = static_cast<size_t>(slot.self);
    call.sends.push_back({call.rank, source_[self], volume(before_box(self))});
    // Straight into the new box where every member's box is one piece of it.
    int64_t total = 0;
    bool direct = true;
    for (int32_t m : slot.group) {
      const Box& box = before_box(static_cast<size_t>(m));
      const int64_t n = volume(box);
      total += n;
      if (n > 0) direct = direct && volume(intersect(box, after_box(s))) == n && contiguous_offset(box, after_box(s)).has_value();
    }
    direct = direct && total == volume(after_box(s));
    std::byte* arrival = nullptr;
    if (!direct) {
      auto data = stage(call.rank, total);
      if (!data) return data.error();
      arrival = *data;
    }
    std::vector<std::byte*> places;
    for (int32_t m : slot.group) {
      const Box& box = before_box(static_cast<size_t>(m));
      const int64_t n = volume(box);
      std::byte* to = arrival;
      if (direct) to = n == 0 ? result_[s] : result_[s] + *contiguous_offset(box, after_box(s)) * wire_size_;
      call.receives.push_back({before_.ranks[static_cast<size_t>(m)], to, n});
      places.push_back(to);
      if (!direct) arrival += n * wire_size_;
    }
    if (!direct) staged.emplace_back(s, std::move(places));
    calls.push_back(std::move(call));
    return Done{};
  });
  if (!status) return status;
  if (out_.groups.empty()) return Done{};
  start_call(CallKind::all_gather).ranks = std::move(calls);
  if (staged.empty()) return Done{};
  add_phase();
  for (const auto& [s, places] : staged) {
    const SlotFlow& slot = flow_.slots[s];
    for (const Take& take : slot.takes) {
      const auto member = std::find(slot.group.begin(), slot.group.end(), take.from) - slot.group.begin();
      copy(after_.ranks[s], take.box, places[static_cast<size_t>(member)], before_box(static_cast<size_t>(take.from)), result_[s],
           after_box(s));
    }
  }
  return Done{};
}

void ProgramMaker::invert() {
  gives_.resize(before_.ranks.size());
  for (size_t t = 0; t < flow_.slots.size(); ++t) {
    for (const Take& take : flow_.slots[t].takes) {
      if (local_before(static_cast<size_t>(take.from))) gives_[static_cast<size_t>(take.from)].push_back({static_cast<int32_t>(t), &take});
    }
  }
}

int64_t ProgramMaker::equal_parts(const std::vector<int32_t>& group) const {
  int64_t part = -1;
  for (int32_t member : group) {
    const std::vector<Take>& takes = flow_.slots[static_cast<size_t>(member)].takes;
    if (takes.size() != group.size()) return -1;
    for (const Take& take : takes) {
      const int64_t n = volume(take.box);
      if (n == 0 || (part >= 0 && n != part)) return -1;
      part = n;
    }
  }
  return part;
}

Status ProgramMaker::make_all_to_all() {
  invert();
  std::map<const std::vector<int32_t>*, int64_t> parts;  // by group
  std::vector<RankCall> calls;
  std::vector<Unpack> unpacks;
  auto status = for_each_member([&](size_t s, const SlotFlow& slot, const std::vector<int32_t>* group) -> Status {
    RankCall call;
    call.rank = after_.ranks[s];
    call.group = group;
    auto [known, fresh] = parts.try_emplace(group, -1);
    if (fresh) known->second = equal_parts(slot.group);
    call.equal_parts = known->second;
    // Sends: one part for each member; straight from the box if every part is one piece of it.
    const auto self = static_cast<size_t>(slot.self);
    std::map<int32_t, const Take*> given;
    int64_t total = 0;
    bool direct = true;
    for (const Give& give : gives_[self]) {
      given[give.to] = give.take;
      total += volume(give.take->box);
      direct = direct && contiguous_offset(give.take->box, before_box(self)).has_value();
    }
    std::byte* staging = nullptr;
    if (!direct) {
      auto data = stage(call.rank, total);
      if (!data) return data.error();
      staging = *data;
    }
    for (int32_t m : slot.group) {
      auto it = given.find(m);
      const int64_t n = it == given.end() ? 0 : volume(it->second->box);
      std::byte* from = direct ? source_[self] : staging;
      if (n > 0 && direct) from += offset_in(it->second->box, before_box(self)) * wire_size_;
      if (n > 0 && !direct) copy(call.rank, it->second->box, source_[self], before_box(self), staging, it->second->box);
      call.sends.push_back({before_.ranks[static_cast<size_t>(m)], from, n});
      if (!direct) staging += n * wire_size_;
    }
    // Receives, likewise.
    std::map<int32_t, const Take*> taken;
    direct = true;
    total = 0;
    for (const Take& take : slot.takes) {
      taken[take.from] = &take;
      total += volume(take.box);
      direct = direct && contiguous_offset(take.box, after_box(s)).has_value();
    }
    std::byte* arrival = nullptr;
    if (!direct) {
      auto data = stage(call.rank, total);
      if (!data) return data.error();
      arrival = *data;
    }
    for (int32_t m : slot.group) {
      auto it = taken.find(m);
      const int64_t n = it == taken.end() ? 0 : volume(it->second->box);
      std::byte* to = direct ? result_[s] : arrival;
      if (n > 0 && direct) to += offset_in(it->second->box, after_box(s)) * wire_size_;
      if (n > 0 && !direct) unpacks.push_back({call.rank, it->second->box, arrival, it->second->box, result_[s], after_box(s)});
      call.receives.push_back({before_.ranks[static_cast<size_t>(m)], to, n});
      if (!direct) arrival += n * wire_size_;
    }
    calls.push_back(std::move(call));
    return Done{};
  });
  if (!status) return status;
  if (out_.groups.empty()) return Done{};
  start_call(CallKind::all_to_all).ranks = std::move(calls);
  unpack_all(unpacks);
  return Done{};
}

Status ProgramMaker::make_reduction() {
  const bool scatters = flow_.form == FlowForm::reduce_scatter;
  std::vector<RankCall> calls;
  auto status = for_each_member([&](size_t s, const SlotFlow& slot, const std::vector<int32_t>* group) -> Status {
    RankCall call;
    call.rank = after_.ranks[s];
    call.group = group;
    const auto self = static_cast<size_t>(slot.self);
    call.receives.push_back({call.rank, result_[s], volume(after_box(s))});
    if (!scatters) {
      call.sends.push_back({call.rank, source_[self], volume(before_box(self))});
      calls.push_back(std::move(call));
      return Done{};
    }
    // One chunk a member, in member order, one behind the other: the box itself, or staging.
    int64_t total = 0;
    bool direct = true;
    for (int32_t m : slot.group) {
      const Box& chunk = after_box(static_cast<size_t>(m));
      const int64_t n = volume(chunk);
      if (n > 0) direct = direct && contiguous_offset(chunk, before_box(self)) == total;
      total += n;
    }
    std::byte* at = source_[self];
    if (!direct) {
      auto data = stage(call.rank, total);
      if (!data) return data.error();
      at = *data;
    }
    for (int32_t m : slot.group) {
      const Box& chunk = after_box(static_cast<size_t>(m));
      if (!direct) copy(call.rank, chunk, source_[self], before_box(self), at, chunk);
      call.sends.push_back({before_.ranks[static_cast<size_t>(m)], at, volume(chunk)});
      at += volume(chunk) * wire_size_;
    }
    calls.push_back(std::move(call));
    return Done{};
  });
  if (!status) return status;
  if (!out_.groups.empty()) start_call(scatters ? CallKind::reduce_scatter : CallKind::all_reduce).ranks = std::move(calls);
  return Done{};
}

}  // namespace meshplan
