#include <algorithm>

#include "replay/step_preparer.h"

namespace meshplan {

Result<std::vector<Chunk>> StepPreparer::chunks_of(
    int32_t rank, const std::vector<PeerBox>& parts, const Box& box, std::byte* data, bool in_place,
    const std::function<void(const Box&, std::byte*)>& staged) {
  std::byte* at = data;
  if (!in_place) {
    int64_t total = 0;
    for (const PeerBox& part : parts) total += volume(*part.box);
    auto staging = stage(rank, total);
    if (!staging) return staging.error();
    at = *staging;
  }
  std::vector<Chunk> chunks;
  for (const PeerBox& part : parts) {
    const int64_t count = volume(*part.box);
    if (in_place) {
      chunks.push_back(
          {part.peer, count == 0 ? data : data + offset_in(*part.box, box) * wire_size_, count});
      continue;
    }
    if (count > 0) staged(*part.box, at);
    chunks.push_back({part.peer, at, count});
    at += count * wire_size_;
  }
  return chunks;
}

Status StepPreparer::make_all_gather() {
  std::vector<RankCall> calls;
  std::vector<std::pair<size_t, std::vector<Chunk>>> staged;  // slot, each member's box
  auto status = for_each_member(
      [&](size_t s, const SlotTransfers& slot, const std::vector<int32_t>* group) -> Status {
        RankCall call;
        call.rank = after_.ranks[s];
        call.group = group;
        const auto self = static_cast<size_t>(slot.self);
        call.sends.push_back({call.rank, source_[self], volume(before_box(self))});
        // Directly into the new box if the box of every member is contiguous in it.
        std::vector<PeerBox> parts;
        int64_t total = 0;
        bool direct = true;
        for (int32_t m : *slot.group) {
          const Box& box = before_box(static_cast<size_t>(m));
          const int64_t n = volume(box);
          parts.push_back({before_.ranks[m], &box});
          total += n;
          if (n > 0)
            direct = direct && volume(intersect(box, after_box(s))) == n &&
                     contiguous_offset(box, after_box(s)).has_value();
        }
        direct = direct && total == volume(after_box(s));
        auto chunks = chunks_of(call.rank, parts, after_box(s), result_[s], direct,
                                [](const Box&, std::byte*) {});
        if (!chunks) return chunks.error();
        call.receives = std::move(*chunks);
        if (!direct) staged.emplace_back(s, call.receives);
        calls.push_back(std::move(call));
        return Done{};
      });
  if (!status) return status;
  if (out_.groups.empty()) return Done{};
  start_call().ranks = std::move(calls);
  if (staged.empty()) return Done{};
  add_phase();
  for (const auto& [s, chunks] : staged) {
    const SlotTransfers& slot = transfers_.slots[s];
    for (const Transfer& transfer : slot.transfers) {
      const auto member =
          std::find(slot.group->begin(), slot.group->end(), transfer.from) - slot.group->begin();
      copy(after_.ranks[s], transfer.box, chunks[member].data,
           before_box(static_cast<size_t>(transfer.from)), result_[s], after_box(s));
    }
  }
  return Done{};
}

void StepPreparer::invert() {
  outgoing_.resize(before_.ranks.size());
  for (size_t t = 0; t < transfers_.slots.size(); ++t) {
    for (const Transfer& transfer : transfers_.slots[t].transfers) {
      if (local_before(static_cast<size_t>(transfer.from)))
        outgoing_[transfer.from].push_back({static_cast<int32_t>(t), &transfer});
    }
  }
}

int64_t StepPreparer::equal_parts(const std::vector<int32_t>& group) const {
  int64_t part = -1;
  for (int32_t member : group) {
    const std::vector<Transfer>& transfers = transfers_.slots[member].transfers;
    if (transfers.size() != group.size()) return -1;
    for (const Transfer& transfer : transfers) {
      const int64_t n = volume(transfer.box);
      if (n == 0 || (part >= 0 && n != part)) return -1;
      part = n;
    }
  }
  return part;
}

Status StepPreparer::make_all_to_all() {
  invert();
  const Box nothing{{0, 0}};
  std::map<const std::vector<int32_t>*, int64_t> part_of_group;
  std::vector<RankCall> calls;
  std::vector<Unpack> unpacks;
  auto status = for_each_member([&](size_t s, const SlotTransfers& slot,
                                    const std::vector<int32_t>* group) -> Status {
    RankCall call;
    call.rank = after_.ranks[s];
    call.group = group;
    auto [known, fresh] = part_of_group.try_emplace(group, -1);
    if (fresh) known->second = equal_parts(*slot.group);
    call.equal_parts = known->second;
    // One part to and from each member; directly from and into the box if every part is contiguous
    // in it.
    const auto self = static_cast<size_t>(slot.self);
    std::map<int32_t, const Box*> given;
    std::map<int32_t, const Box*> taken;
    for (const Outgoing& outgoing : outgoing_[self]) given[outgoing.to] = &outgoing.transfer->box;
    for (const Transfer& transfer : slot.transfers) taken[transfer.from] = &transfer.box;
    auto parts_of = [&](const std::map<int32_t, const Box*>& boxes) {
      std::vector<PeerBox> parts;
      for (int32_t m : *slot.group) {
        const auto at = boxes.find(m);
        parts.push_back({before_.ranks[m], at == boxes.end() ? &nothing : at->second});
      }
      return parts;
    };
    auto in_place = [](const std::map<int32_t, const Box*>& boxes, const Box& box) {
      return std::all_of(boxes.begin(), boxes.end(), [&](const auto& b) {
        return contiguous_offset(*b.second, box).has_value();
      });
    };
    auto sends = chunks_of(call.rank, parts_of(given), before_box(self), source_[self],
                           in_place(given, before_box(self)), [&](const Box& box, std::byte* at) {
                             copy(call.rank, box, source_[self], before_box(self), at, box);
                           });
    if (!sends) return sends.error();
    auto receives =
        chunks_of(call.rank, parts_of(taken), after_box(s), result_[s],
                  in_place(taken, after_box(s)), [&](const Box& box, std::byte* at) {
                    unpacks.push_back({call.rank, box, at, box, result_[s], after_box(s)});
                  });
    if (!receives) return receives.error();
    call.sends = std::move(*sends);
    call.receives = std::move(*receives);
    calls.push_back(std::move(call));
    return Done{};
  });
  if (!status) return status;
  if (out_.groups.empty()) return Done{};
  start_call().ranks = std::move(calls);
  unpack_all(unpacks);
  return Done{};
}

Status StepPreparer::make_one_result() {
  const bool scatters = row_of(transfers_.op).sends == CallChunks::each;
  std::vector<RankCall> calls;
  auto status = for_each_member([&](size_t s, const SlotTransfers& slot,
                                    const std::vector<int32_t>* group) -> Status {
    RankCall call;
    call.rank = after_.ranks[s];
    call.group = group;
    const auto self = static_cast<size_t>(slot.self);
    const auto first = slot.transfers.empty() ? self : static_cast<size_t>(slot.transfers[0].from);
    call.receives.push_back({before_.ranks[first], result_[s], volume(after_box(s))});
    if (!scatters) {
      call.sends.push_back({call.rank, source_[self], volume(before_box(self))});
      calls.push_back(std::move(call));
      return Done{};
    }
    // One chunk per member, consecutive in member order: in the box itself, or in staging.
    std::vector<PeerBox> parts;
    int64_t total = 0;
    bool direct = true;
    for (int32_t m : *slot.group) {
      const Box& chunk = after_box(static_cast<size_t>(m));
      const int64_t n = volume(chunk);
      parts.push_back({before_.ranks[m], &chunk});
      if (n > 0) direct = direct && contiguous_offset(chunk, before_box(self)) == total;
      total += n;
    }
    auto chunks = chunks_of(call.rank, parts, before_box(self), source_[self], direct,
                            [&](const Box& chunk, std::byte* at) {
                              copy(call.rank, chunk, source_[self], before_box(self), at, chunk);
                            });
    if (!chunks) return chunks.error();
    call.sends = std::move(*chunks);
    calls.push_back(std::move(call));
    return Done{};
  });
  if (!status) return status;
  if (!out_.groups.empty()) start_call().ranks = std::move(calls);
  return Done{};
}

}  // namespace meshplan
