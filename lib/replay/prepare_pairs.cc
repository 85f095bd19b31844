#include <optional>

#include "replay/step_preparer.h"

namespace meshplan {
namespace {

// The lower corner of a box: boxes of one member that start there are the same.
std::vector<int64_t> corner_of(const Box& box) {
  std::vector<int64_t> at;
  at.reserve(box.size());
  for (const Interval& i : box) at.push_back(i.lo);
  return at;
}

}  // namespace

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

// The first of two phases: parts fetched for the host, each into its own buffer.
Result<StepPreparer::Fetched> StepPreparer::make_first_phase() {
  Fetched fetched;
  if (transfers_.first_phase.empty()) return fetched;
  std::map<Pair, std::vector<PairTransfer>> sends;
  std::map<Pair, std::vector<PairTransfer>> receives;
  std::vector<Unpack> unpacks;
  for (const FirstTransfer& f : transfers_.first_phase) {
    const auto from = static_cast<size_t>(f.from);
    const auto member = static_cast<size_t>(f.to);
    if (local_before(member)) {
      auto data = stage(before_.ranks[member], volume(f.box));
      if (!data) return data.error();
      fetched[{f.to, corner_of(f.box)}] = *data;
      receives[{before_.ranks[member], before_.ranks[from]}].push_back(
          {f.box, nullptr, {}, *data, f.box});
    }
    if (local_before(from)) {
      sends[{before_.ranks[from], before_.ranks[member]}].push_back(
          {f.box, source_[from], before_box(from), nullptr, {}});
    }
  }
  if (auto done = make_pairs(sends, receives, unpacks); !done) return done.error();
  unpack_all(unpacks);
  if (out_.phases.back().call) add_phase();
  return fetched;
}

// Reduces the contributions of every result into the first.
void StepPreparer::combine_contributions(
    const std::vector<std::vector<std::byte*>>& contributions) {
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

Status StepPreparer::make_send_receive() {
  std::map<Pair, std::vector<PairTransfer>> sends;
  std::map<Pair, std::vector<PairTransfer>> receives;
  std::vector<Unpack> unpacks;
  auto fetches = make_first_phase();
  if (!fetches) return fetches.error();
  const Fetched& fetched = *fetches;
  // The buffer of each contribution: the first goes into the result, later ones into their own
  // buffers and are then combined.
  std::vector<std::vector<std::byte*>> assembled(after_.ranks.size());
  for (size_t t = 0; t < after_.ranks.size(); ++t) {
    if (!local_after(t)) continue;
    assembled[t].push_back(result_[t]);
    for (int64_t k = 1; k < transfers_.contributions; ++k) {
      auto data = stage(after_.ranks[t], volume(after_box(t)));
      if (!data) return data.error();
      assembled[t].push_back(*data);
    }
  }
  for (size_t t = 0; t < after_.ranks.size(); ++t) {
    for (const Transfer& transfer : transfers_.slots[t].transfers) {
      const auto from = static_cast<size_t>(transfer.from);
      const int32_t sender = before_.ranks[from];
      const int32_t receiver = after_.ranks[t];
      const std::byte* held = nullptr;
      Box held_box;
      if (local_before(from)) {
        held =
            transfer.fetched ? fetched.at({transfer.from, corner_of(transfer.box)}) : source_[from];
        held_box = transfer.fetched ? transfer.box : before_box(from);
      }
      std::byte* to =
          local_after(t) ? assembled[t][static_cast<size_t>(transfer.contribution)] : nullptr;
      if (sender == receiver) {
        if (local_after(t)) copy(receiver, transfer.box, held, held_box, to, after_box(t));
        continue;
      }
      if (local_before(from))
        sends[{sender, receiver}].push_back({transfer.box, held, held_box, nullptr, {}});
      if (local_after(t))
        receives[{receiver, sender}].push_back({transfer.box, nullptr, {}, to, after_box(t)});
    }
  }
  if (auto done = make_pairs(sends, receives, unpacks); !done) return done;
  unpack_all(unpacks);
  if (transfers_.contributions > 1) combine_contributions(assembled);
  return Done{};
}

}  // namespace meshplan
