#include "planner/bundle_kind.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/int_math.h"
#include "transfer/listed_transfers.h"

namespace meshplan {
namespace {

int64_t group_size(const std::vector<Atom>& atoms) {
  int64_t size = 1;
  for (const Atom& atom : atoms) size = saturating_mul(size, atom.size);
  return size;
}

StepTransfers transfers_of(const WayQuestion& q, const PlannedRedistribution& planned, size_t step,
                           const std::vector<HeldBoxes>& held) {
  TransferQuestion question;
  question.before = &held[step];
  question.after = &held[step + 1];
  question.step = &planned.steps[step];
  question.ranks = q.ranks;
  question.topology = &q.plan->topology;
  question.place = "redistribution '" + planned.request.id + "', step " + std::to_string(step);
  auto transfers = make_transfers(question);
  MESHPLAN_CHECK(transfers.ok(), "a planned step has transfers: " + transfers.error().message);
  return std::move(transfers).value();
}

}  // namespace

bool Way::only_exchanges() const {
  return std::all_of(steps.begin(), steps.end(),
                     [](const WayStep& step) { return step.op == Op::exchange; });
}

std::optional<Way> make_way(const WayQuestion& q, PlannedRedistribution planned) {
  const Request& request = planned.request;
  Way way;
  const std::vector<HeldBoxes> held = held_boxes_of(*q.plan, planned, *q.ranks);
  const int64_t width = element_bytes(request.tensor.dtype);
  std::optional<GotBoxes> got;  // in the step before, where all steps so far go in pieces
  for (size_t i = 0; i < planned.steps.size(); ++i) {
    const Step& step = std::as_const(planned).steps[i];
    if (step.phases != 1) return std::nullopt;
    if (i + 1 < planned.steps.size()) {
      std::vector<int64_t> bytes(q.ranks->global_ids.size(), 0);
      for (size_t slot = 0; slot < held[i + 1].ranks.size(); ++slot) {
        bytes[static_cast<size_t>(held[i + 1].ranks[slot])] =
            saturating_mul(volume(box_of_slot(held[i + 1], static_cast<int64_t>(slot))), width);
      }
      way.between.push_back(std::move(bytes));
    }
    if (is_local(step.op) || (is_collective(step.op) && group_size(step.mesh_dims) == 1)) continue;
    WayStep moved;
    moved.index = i;
    moved.op = step.op;
    moved.element_bytes =
        step.reduce_op && request.reduce_dtype ? element_bytes(*request.reduce_dtype) : width;
    if (step.op == Op::exchange) {
      StepTransfers transfers = transfers_of(q, planned, i, held);
      const bool in_pieces = goes_in_pieces(planned, i);
      moved.cuts = in_pieces && i > 0 ? cuts_of_next(*got, transfers, held[i], held[i + 1])
                                      : cuts_of(transfers, held[i], held[i + 1]);
      if (in_pieces) got = i == 0 ? got_in_first(transfers) : got_in_next(*got, transfers);
    } else {
      moved.mesh_dims = step.mesh_dims;
      moved.ranks = held[i].ranks;
      moved.figures = step_figures(i == 0 ? request.src : std::as_const(planned).steps[i - 1].state,
                                   step.state, request.tensor.shape, held[i].mesh_shape, step.op,
                                   group_size(step.mesh_dims), moved.element_bytes);
    }
    way.steps.push_back(std::move(moved));
  }
  way.planned = std::move(planned);
  return way;
}

}  // namespace meshplan
