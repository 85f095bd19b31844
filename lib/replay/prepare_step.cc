#include "replay/prepared_step.h"

#include <utility>

#include "replay/join_copies.h"
#include "replay/step_preparer.h"

namespace meshplan {
Result<PreparedStep> StepPreparer::make() {
  out_.after.assign(after_.ranks.size(), nullptr);
  source_ = *q_.held;
  for (size_t s = 0; s < after_.ranks.size(); ++s) {
    if (!local_after(s)) continue;
    const int64_t bytes = volume(after_box(s)) * element_bytes(q_.dtype);
    out_.local_bytes += bytes;
    if (q_.into != nullptr) {
      out_.after[s] = (*q_.into)[s];
      continue;
    }
    auto data = q_.device->allocate(after_.ranks[s], bytes);
    if (!data) return located(data.error());
    out_.after[s] = *data;
  }
  result_ = out_.after;
  add_phase();
  if (casts_) {
    if (auto done = cast_sources(); !done) return done.error();
  }
  if (auto done = make_phases(); !done) return done.error();
  finish_reduction();
  for (Phase& phase : out_.phases) {
    for (auto& ops : phase.work) {
      for (LocalOp& op : ops) {
        if (op.past_cache && op.joined > 1) read_in_order(op);
      }
    }
  }
  return std::move(out_);
}

// By the chunks of the op's call.
Status StepPreparer::make_phases() {
  const OpRow& row = row_of(transfers_.op);
  if (row.sends == CallChunks::none) return make_local();
  if (row.sends == CallChunks::any) return make_send_receive();
  if (row.receives == CallChunks::one) return make_one_result();
  return row.sends == CallChunks::one ? make_all_gather() : make_all_to_all();
}

void StepPreparer::copy(int32_t rank, const Box& part, const std::byte* from, const Box& from_box,
                        std::byte* to, const Box& to_box) {
  LocalOp op;
  op.kind = LocalOp::Kind::copy;
  op.dtype = wire_dtype_;
  op.from = from;
  op.to = to;
  op.region = make_region(part, from_box, to_box);
  op.past_cache = out_.local_bytes > cached_bytes;
  if (op.region.run == 0) return;
  std::vector<LocalOp>& list = work_of(rank);
  if (list.empty() || !join_copies(list.back(), op)) list.push_back(std::move(op));
}

Result<std::byte*> StepPreparer::stage(int32_t rank, int64_t count, StagingUse use) {
  auto data = q_.stage ? q_.stage(rank, count * wire_size_, use)
                       : q_.device->allocate(rank, count * wire_size_);
  if (!data) return located(data.error());
  return data;
}

Status StepPreparer::cast_sources() {
  for (size_t s = 0; s < before_.ranks.size(); ++s) {
    if (!local_before(s)) continue;
    const int64_t count = volume(before_box(s));
    auto data = stage(before_.ranks[s], count, StagingUse::cast);
    if (!data) return data.error();
    LocalOp op;
    op.kind = LocalOp::Kind::cast;
    op.from_dtype = q_.dtype;
    op.dtype = wire_dtype_;
    op.from = source_[s];
    op.to = *data;
    op.count = count;
    work_of(before_.ranks[s]).push_back(op);
    source_[s] = *data;
  }
  for (size_t s = 0; s < after_.ranks.size(); ++s) {
    if (!local_after(s)) continue;
    auto data = stage(after_.ranks[s], volume(after_box(s)), StagingUse::cast);
    if (!data) return data.error();
    result_[s] = *data;
  }
  return Done{};
}

void StepPreparer::finish_reduction() {
  if (is_local(transfers_.op) || (!casts_ && transfers_.divisor == 1)) return;
  if (out_.phases.back().call) add_phase();
  for (size_t s = 0; s < after_.ranks.size(); ++s) {
    if (!local_after(s)) continue;
    const int64_t count = volume(after_box(s));
    if (count == 0) continue;
    if (transfers_.divisor != 1) {
      LocalOp op;
      op.kind = LocalOp::Kind::divide;
      op.dtype = wire_dtype_;
      op.to = result_[s];
      op.count = count;
      op.divisor = transfers_.divisor;
      work_of(after_.ranks[s]).push_back(op);
    }
    if (casts_) {
      LocalOp op;
      op.kind = LocalOp::Kind::cast;
      op.from_dtype = wire_dtype_;
      op.dtype = q_.dtype;
      op.from = result_[s];
      op.to = out_.after[s];
      op.count = count;
      work_of(after_.ranks[s]).push_back(op);
    }
  }
}

Status StepPreparer::make_local() {
  for (size_t s = 0; s < after_.ranks.size(); ++s) {
    if (!local_after(s)) continue;
    const SlotTransfers& slot = transfers_.slots[s];
    if (slot.identity) {
      LocalOp op;
      op.kind = LocalOp::Kind::identity;
      op.dtype = q_.dtype;
      op.op = transfers_.reduce_op.value_or(ReduceOp::sum);
      op.to = result_[s];
      op.count = volume(after_box(s));
      work_of(after_.ranks[s]).push_back(op);
    }
    copy_own_transfers(s);
  }
  return Done{};
}

void StepPreparer::copy_own_transfers(size_t s) {
  const SlotTransfers& slot = transfers_.slots[s];
  for (const Transfer& transfer : slot.transfers) {
    if (transfer.from != slot.self || transfer.fetched) continue;
    const auto from = static_cast<size_t>(transfer.from);
    copy(after_.ranks[s], transfer.box, source_[from], before_box(from), result_[s], after_box(s));
  }
}

const std::vector<int32_t>* StepPreparer::group_of(const std::vector<int32_t>& slots) {
  auto known = group_index_.find(slots.front());
  if (known != group_index_.end()) return known->second;
  std::vector<int32_t> ranks;
  for (int32_t s : slots) ranks.push_back(before_.ranks[s]);
  out_.groups.push_back(std::make_unique<const std::vector<int32_t>>(std::move(ranks)));
  return group_index_.emplace(slots.front(), out_.groups.back().get()).first->second;
}

Call& StepPreparer::start_call() {
  Call call;
  call.op = transfers_.op;
  call.dtype = wire_dtype_;
  call.reduce_op = transfers_.reduce_op.value_or(ReduceOp::sum);
  call.place = q_.place;
  out_.phases.back().call = std::move(call);
  return *out_.phases.back().call;
}

void StepPreparer::unpack_all(const std::vector<Unpack>& list) {
  if (list.empty()) return;
  add_phase();
  for (const Unpack& u : list) copy(u.rank, u.part, u.from, u.from_box, u.to, u.to_box);
}

Result<PreparedStep> prepare_step(const PrepareQuestion& question) {
  return StepPreparer(question).make();
}

}  // namespace meshplan
