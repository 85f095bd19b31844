
#include "replay/step_preparer.h"

namespace meshplan {

Result<Chunk> StepPreparer::chunk_of(
    const Pair& pair, const std::vector<PairTransfer>& transfers, std::byte* alone,
    const std::function<void(const PairTransfer&, std::byte*)>& staged) {
  int64_t total = 0;
  for (const PairTransfer& p : transfers) total += volume(p.box);
  if (alone != nullptr) return Chunk{pair.second, alone, total};
  auto data = stage(pair.first, total);
  if (!data) return data.error();
  std::byte* at = *data;
  for (const PairTransfer& p : transfers) {
    staged(p, at);
    at += volume(p.box) * wire_size_;
  }
  return Chunk{pair.second, *data, total};
}

Status StepPreparer::make_pairs(const std::map<Pair, std::vector<PairTransfer>>& sends,
                                const std::map<Pair, std::vector<PairTransfer>>& receives,
                                std::vector<Unpack>& unpacks) {
  std::map<int32_t, RankCall> calls;
  // The address of a single transfer that is contiguous in its box.
  auto in_place = [&](const std::vector<PairTransfer>& transfers, const Box& box,
                      std::byte* data) -> std::byte* {
    if (transfers.size() != 1) return nullptr;
    const auto at = contiguous_offset(transfers[0].box, box);
    return at ? data + *at * wire_size_ : nullptr;
  };
  for (const auto& [pair, transfers] : sends) {
    const int32_t rank = pair.first;
    std::byte* alone =
        in_place(transfers, transfers[0].from_box, const_cast<std::byte*>(transfers[0].from));
    auto chunk = chunk_of(pair, transfers, alone, [&](const PairTransfer& p, std::byte* at) {
      copy(rank, p.box, p.from, p.from_box, at, p.box);
    });
    if (!chunk) return chunk.error();
    calls[rank].sends.push_back(*chunk);
  }
  for (const auto& [pair, transfers] : receives) {
    const int32_t rank = pair.first;
    std::byte* alone = in_place(transfers, transfers[0].to_box, transfers[0].to);
    auto chunk = chunk_of(pair, transfers, alone, [&](const PairTransfer& p, std::byte* at) {
      unpacks.push_back({rank, p.box, at, p.box, p.to, p.to_box});
    });
    if (!chunk) return chunk.error();
    calls[rank].receives.push_back(*chunk);
  }
  Call& call = start_call();
  for (auto& [rank, rank_call] : calls) {
    rank_call.rank = rank;
    call.ranks.push_back(std::move(rank_call));
  }
  return Done{};
}

// The first of two phases: parts fetched for the unit, each into its own buffer. Chunk k is in call
// k.
Result<StepPreparer::Fetched> StepPreparer::add_first_phase(std::vector<PairCall>& calls) {
  Fetched fetched;
  for (const FirstTransfer& f : transfers_.first_phase) {
    const auto from = static_cast<size_t>(f.from);
    const auto member = static_cast<size_t>(f.to);
    const int32_t holder = before_.ranks[from];
    const int32_t fetcher = after_.ranks[member];
    PairCall& call = calls[f.chunk];
    if (local_after(member)) {
      auto data = stage(fetcher, volume(f.box));
      if (!data) return data.error();
      fetched[{f.to, corner_of(f.box)}] = *data;
      call.receives[{fetcher, holder}].push_back({f.box, nullptr, {}, *data, f.box});
    }
    if (local_before(from))
      call.sends[{holder, fetcher}].push_back(
          {f.box, source_[from], before_box(from), nullptr, {}});
  }
  return fetched;
}

// Reduces the contributions of every result into the first.
void StepPreparer::combine_contributions(const Contributions& contributions) {
  if (out_.phases.back().call) add_phase();
  for (size_t t = 0; t < after_.ranks.size(); ++t) {
    if (!local_after(t)) continue;
    for (size_t k = 1; k < contributions[t].size(); ++k) {
      LocalOp op;
      op.kind = LocalOp::Kind::combine;
      op.dtype = wire_dtype_;
      op.op = *transfers_.reduce_op;
      op.from = contributions[t][k];
      op.to = contributions[t][0];
      op.count = volume(after_box(t));
      work_of(after_.ranks[t]).push_back(op);
    }
  }
}

// One phase is one call. Of two phases, call k fetches chunk k and shares chunk k - 1 inside units,
// so that both phases are under way at once: chunks + 1 calls.
Status StepPreparer::make_send_receive() {
  const size_t first = transfers_.first_phase.empty() ? 0 : 1;  // call of chunk 0
  std::vector<PairCall> calls(static_cast<size_t>(transfers_.chunks) + first);
  auto fetched = add_first_phase(calls);
  if (!fetched) return fetched.error();
  auto assembled = stage_contributions();
  if (!assembled) return assembled.error();
  std::vector<std::vector<SlotTransfer>> by_call(calls.size());
  for (size_t t = 0; t < after_.ranks.size(); ++t) {
    for (const Transfer& transfer : transfers_.slots[t].transfers)
      by_call[static_cast<size_t>(transfer.chunk) + first].push_back({t, &transfer});
  }
  for (size_t c = 0; c < calls.size(); ++c) {
    if (out_.phases.back().call) add_phase();
    for (const auto& [slot, transfer] : by_call[c])
      add_to_call(slot, *transfer, *fetched, *assembled, calls[c]);
    std::vector<Unpack> unpacks;
    if (auto done = make_pairs(calls[c].sends, calls[c].receives, unpacks); !done) return done;
    unpack_all(unpacks);
  }
  if (transfers_.contributions > 1) combine_contributions(*assembled);
  return Done{};
}

// The buffers of the contributions of each slot: the first goes into the result, later ones into
// their own buffers and are then combined.
Result<StepPreparer::Contributions> StepPreparer::stage_contributions() {
  Contributions assembled(after_.ranks.size());
  for (size_t t = 0; t < after_.ranks.size(); ++t) {
    if (!local_after(t)) continue;
    assembled[t].push_back(result_[t]);
    for (int64_t k = 1; k < transfers_.contributions; ++k) {
      auto data = stage(after_.ranks[t], volume(after_box(t)));
      if (!data) return data.error();
      assembled[t].push_back(*data);
    }
  }
  return assembled;
}

// What a rank sends another; what it has itself is copied before the call.
void StepPreparer::add_to_call(size_t slot, const Transfer& transfer, const Fetched& fetched,
                               const Contributions& assembled, PairCall& call) {
  const auto from = static_cast<size_t>(transfer.from);
  const int32_t sender = transfer.fetched ? after_.ranks[from] : before_.ranks[from];
  const int32_t receiver = after_.ranks[slot];
  const std::byte* held = nullptr;
  Box held_box;
  if (number(sender) >= 0) {
    held = transfer.fetched ? fetched.at({transfer.from, corner_of(transfer.box)}) : source_[from];
    held_box = transfer.fetched ? transfer.box : before_box(from);
  }
  std::byte* to = local_after(slot) ? assembled[slot][transfer.contribution] : nullptr;
  if (sender == receiver) {
    if (local_after(slot)) copy(receiver, transfer.box, held, held_box, to, after_box(slot));
    return;
  }
  if (number(sender) >= 0)
    call.sends[{sender, receiver}].push_back({transfer.box, held, held_box, nullptr, {}});
  if (local_after(slot))
    call.receives[{receiver, sender}].push_back({transfer.box, nullptr, {}, to, after_box(slot)});
}

}  // namespace meshplan
