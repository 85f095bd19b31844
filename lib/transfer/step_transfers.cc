#include "transfer/step_transfers.h"

#include <algorithm>

#include "transfer/transfer_maker.h"

namespace meshplan {
namespace {

std::string text_of(const std::vector<int64_t>& index) {
  std::string out = "[";
  for (size_t i = 0; i < index.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(index[i]);
  return out + "]";
}

bool has_element(const Box& box, const std::vector<int64_t>& index) {
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] < box[d].lo || index[d] >= box[d].hi) return false;
  }
  return true;
}

}  // namespace

std::vector<int64_t> corner_of(const Box& box) {
  std::vector<int64_t> corner;
  corner.reserve(box.size());
  for (const Interval& i : box) corner.push_back(i.lo);
  return corner;
}

bool pending_of_size_one(const State& state) {
  return std::any_of(state.partial.begin(), state.partial.end(),
                     [](const PendingSubAxis& p) { return p.sub_axis.size == 1; });
}

Result<StepTransfers> TransferMaker::make() {
  if (auto done = sort_sub_axes(); !done) return done.error();
  find_selves();
  out_.op = step_.op;
  if (auto done = make_all(); !done) return done.error();
  return std::move(out_);
}

Status TransferMaker::make_all() {
  if (step_.op == Op::slice) return make_slice();
  if (step_.op == Op::to_partial) return make_to_partial();
  const bool reduces = row_of(step_.op).reduces;
  if (auto done = check_pending(reduces); !done) return done;
  if (reduces || !sub_axes_.reduced.empty()) {
    if (auto done = set_reduction(); !done) return done;
  }
  if (step_.op == Op::exchange) return make_exchange();
  return reduces ? make_reduction() : make_movement();
}

Error TransferMaker::fail(const std::string& what) const {
  return wrong_data(q_.place + ": " + what);
}

Status TransferMaker::sort_sub_axes() {
  const std::vector<SubAxis> before = partial_sub_axes(before_.state);
  const std::vector<SubAxis> after = partial_sub_axes(after_.state);
  if (crosses_) {
    if (step_.op != Op::exchange) {
      return fail(std::string(to_text(step_.op)) +
                  " cannot cross from mesh to mesh; only an exchange may");
    }
    if (!after.empty()) {
      return fail(
          "an exchange across meshes leaves a reduction pending; complete it before or after");
    }
    sub_axes_.reduced = before;
    return Done{};
  }
  auto reduced = sub_axes_without(before, after, before_.mesh_shape);
  auto added = sub_axes_without(after, before, before_.mesh_shape);
  if (!reduced) return fail(reduced.error().message);
  if (!added) return fail(added.error().message);
  auto kept = sub_axes_without(before, *reduced, before_.mesh_shape);
  if (!kept) return fail(kept.error().message);
  auto talking = sub_axes_without(step_.mesh_dims, *kept, before_.mesh_shape);
  if (!talking) return fail(talking.error().message);
  sub_axes_ = {std::move(*kept), std::move(*reduced), std::move(*added), std::move(*talking)};
  return Done{};
}

void TransferMaker::find_selves() {
  std::unordered_map<int32_t, int32_t> slot_of_rank;
  for (size_t s = 0; s < before_.ranks.size(); ++s)
    slot_of_rank.emplace(before_.ranks[s], static_cast<int32_t>(s));
  out_.slots.resize(after_.ranks.size());
  for (size_t s = 0; s < after_.ranks.size(); ++s) {
    const auto same = slot_of_rank.find(after_.ranks[s]);
    if (same != slot_of_rank.end()) out_.slots[s].self = same->second;
  }
}

Status TransferMaker::check_pending(bool reduces) const {
  const std::string op = to_text(step_.op);
  if (reduces && sub_axes_.reduced.empty() && !pending_of_size_one(before_.state))
    return fail(op + " has no pending reduction to complete");
  if (!reduces && step_.op != Op::exchange && !sub_axes_.reduced.empty())
    return fail(op + " loses a pending reduction");
  if (!sub_axes_.added.empty()) return fail(op + " adds a pending reduction; only to_partial may");
  return Done{};
}

Status TransferMaker::set_reduction() {
  // What is pending over one rank is whole: nothing is combined, or sent in another type.
  for (const SubAxis& a : sub_axes_.reduced) out_.contributions *= a.size;
  if (out_.contributions == 1 && !step_.reduce_op) return Done{};
  bool averages = true;
  for (const PendingSubAxis& p : before_.state.partial) {
    for (const SubAxis& a : sub_axes_.reduced) {
      if (p.sub_axis.mesh_dim == a.mesh_dim && p.sub_axis.before <= a.before)
        averages = averages && p.op == ReduceOp::avg;
    }
  }
  const ReduceOp fallback = averages ? ReduceOp::avg : before_.state.partial.front().op;
  out_.reduce_op = step_.reduce_op.value_or(fallback);
  out_.divisor = step_.scale_divisor;
  if (*out_.reduce_op == ReduceOp::avg) out_.divisor *= out_.contributions;
  // Across meshes the step's mesh dims are those of the target mesh, and all that is pending on the
  // source mesh is reduced.
  const std::vector<SubAxis> here = crosses_ ? std::vector<SubAxis>{} : sub_axes_.reduced;
  auto outside = sub_axes_without(here, step_.mesh_dims, before_.mesh_shape);
  if (!outside) return fail(outside.error().message);
  if (!outside->empty()) return fail("reduces over a mesh dim that is not among its mesh_dims");
  return Done{};
}

void TransferMaker::sort_by_rank(std::vector<int32_t>& slots) const {
  std::sort(slots.begin(), slots.end(), [&](int32_t a, int32_t b) {
    return before_.ranks[static_cast<size_t>(a)] < before_.ranks[static_cast<size_t>(b)];
  });
}

Error TransferMaker::missing(size_t slot, const std::vector<Transfer>& held,
                             const std::string& why) const {
  const Box& want = box_of_slot(after_, static_cast<int64_t>(slot));
  const int64_t n = volume(want);
  std::vector<int64_t> index;
  for (int64_t at = 0; at < n; ++at) {
    index = index_at(want, at);
    const bool covered = std::any_of(held.begin(), held.end(),
                                     [&](const Transfer& t) { return has_element(t.box, index); });
    if (!covered) break;
  }
  return fail("rank " + std::to_string(global_id(after_.ranks[slot])) + " needs element " +
              text_of(index) + " and " + why);
}

Result<StepTransfers> make_transfers(const TransferQuestion& question) {
  return TransferMaker(question).make();
}

}  // namespace meshplan
