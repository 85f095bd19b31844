// slice and to_partial: every rank keeps part of what it holds.
#include <algorithm>

#include "transfer/transfer_maker.h"

namespace meshplan {
namespace {

bool contains(const Box& outer, const Box& inner) {
  if (volume(inner) == 0) return true;
  for (size_t d = 0; d < outer.size(); ++d) {
    if (inner[d].lo < outer[d].lo || inner[d].hi > outer[d].hi) return false;
  }
  return true;
}

// How the sub-axis is pending; sum where it is not.
ReduceOp pending_op(const State& state, const SubAxis& a) {
  for (const PendingSubAxis& p : state.partial) {
    if (p.sub_axis.mesh_dim == a.mesh_dim && p.sub_axis.before <= a.before &&
        p.sub_axis.before * p.sub_axis.size >= a.before * a.size)
      return p.op;
  }
  return ReduceOp::sum;
}

}  // namespace

Status TransferMaker::make_slice() {
  if (!sub_axes_.reduced.empty() || !sub_axes_.added.empty())
    return fail("a slice changes a pending reduction");
  for (size_t s = 0; s < out_.slots.size(); ++s) {
    const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
    const int32_t self = out_.slots[s].self;
    if (self < 0 || !contains(box_of_slot(before_, self), want)) {
      std::vector<Transfer> held;
      if (self >= 0) held.push_back({self, 0, false, intersect(box_of_slot(before_, self), want)});
      return missing(s, held, "the rank itself does not hold it before a slice");
    }
    if (volume(want) > 0) out_.slots[s].transfers.push_back({self, 0, false, want});
  }
  return Done{};
}

// A reduction becomes pending on sub-axes that replicate or shard, and no element moves: the values
// that the ranks then hold reduce to the value before.
//
//     2 ranks, [4] of values v, R -> P(sum)        rank 0 keeps v, rank 1 has zeros: v + 0
//                               R -> P(max)        both keep v: max(v, v)
//                               S(0) -> P(sum)     each keeps its half among zeros
//
// Kinds that count the value of every rank (sum, product) keep it on coordinate 0 only; the others
// keep it everywhere. Of a shard no rank has all, so only zeros may fill the rest: P(sum).
Status TransferMaker::make_to_partial() {
  if (!sub_axes_.reduced.empty()) return fail("to_partial completes a pending reduction");
  if (sub_axes_.added.empty() && !pending_of_size_one(after_.state))
    return fail("to_partial adds no pending reduction");
  auto replicated =
      sub_axes_without(sub_axes_.added, shard_sub_axes(before_.state), before_.mesh_shape);
  if (!replicated) return fail(replicated.error().message);
  auto sharded = sub_axes_without(sub_axes_.added, *replicated, before_.mesh_shape);
  if (!sharded) return fail(sharded.error().message);
  for (const SubAxis& a : *sharded) {
    const ReduceOp op = pending_op(after_.state, a);
    if (op != ReduceOp::sum)
      return fail(std::string("a shard cannot become P(") + to_text(op) + "), only P(sum)");
  }
  std::vector<SubAxis> counted;
  for (const SubAxis& a : *replicated) {
    const ReduceOp op = pending_op(after_.state, a);
    if (op == ReduceOp::sum || op == ReduceOp::product) counted.push_back(a);
  }
  out_.reduce_op =
      sub_axes_.added.empty() ? ReduceOp::sum : pending_op(after_.state, sub_axes_.added.front());
  return fill_partial(CoordinatesOn(counted, before_.mesh_shape), sharded->empty());
}

Status TransferMaker::fill_partial(const CoordinatesOn& counted, bool from_replicate) {
  for (size_t s = 0; s < out_.slots.size(); ++s) {
    SlotTransfers& slot = out_.slots[s];
    const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
    const Box& held = box_of_slot(before_, slot.self);
    const std::string rank = "rank " + std::to_string(global_id(after_.ranks[s]));
    if (!contains(want, held)) {
      return fail(rank + " holds " + to_text(held) + " before to_partial and only " +
                  to_text(want) + " after it");
    }
    if (from_replicate && !same_elements(want, held))
      return fail("to_partial moves elements of " + rank);
    const bool keeps = counted.number(slot.self % before_.size) == 0;
    slot.identity = !keeps || !same_elements(want, held);
    if (keeps && volume(held) > 0) slot.transfers.push_back({slot.self, 0, false, held});
  }
  return Done{};
}

}  // namespace meshplan
