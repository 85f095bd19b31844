#include "planner/bundle_kind.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/int_math.h"
#include "cost/step_cost.h"
#include "search/optimal.h"
#include "transfer/level_units.h"
#include "transfer/listed_transfers.h"
#include "transfer/round_transfers.h"

namespace meshplan {
namespace {

StepTransfers transfers_of(const WayQuestion& q, const PlannedRedistribution& planned, size_t step,
                           const std::vector<HeldBoxes>& held) {
  auto transfers = make_transfers(transfer_question(q, planned, step, held));
  MESHPLAN_CHECK(transfers.ok(), "a planned step has transfers: " + transfers.error().message);
  return std::move(transfers).value();
}

// The outermost level over which ranks send.
int outermost_level(const WayQuestion& q, const std::vector<StepCut>& cuts) {
  const std::vector<int64_t> level_ranks = level_ranks_of(q.plan->topology);
  const LevelUnits units(level_ranks);
  const auto id = [&](int32_t rank) { return q.ranks->global_ids[static_cast<size_t>(rank)]; };
  int level = 0;
  for (const StepCut& cut : cuts) {
    while (units.unit(id(cut.from), level) != units.unit(id(cut.to), level)) ++level;
  }
  return level;
}

// Of a rank, the most over ranks. The cuts are sorted by pair.
int64_t messages_of(const std::vector<StepCut>& cuts, size_t ranks) {
  std::vector<int64_t> messages(ranks, 0);
  std::pair<int32_t, int32_t> last{-1, -1};
  for (const StepCut& cut : cuts) {
    if (cut.lo >= cut.hi || cut.slice == 0) continue;
    if (std::exchange(last, {cut.from, cut.to}) == std::pair(cut.from, cut.to)) continue;
    ++messages[static_cast<size_t>(cut.from)];
    ++messages[static_cast<size_t>(cut.to)];
  }
  return *std::max_element(messages.begin(), messages.end());
}

// Whether some step is of a form that no round runs.
bool needs_other_steps(const PlannedRedistribution& planned) {
  const std::vector<Step>& steps = planned.steps;
  return std::any_of(steps.begin(), steps.end(), [](const Step& s) {
    return s.laps > 1 || s.fetched_by_all || s.far_64ths > 0 || s.at_once > 0;
  });
}

}  // namespace

TransferQuestion transfer_question(const WayQuestion& q, const PlannedRedistribution& planned,
                                   size_t step, const std::vector<HeldBoxes>& held) {
  TransferQuestion question;
  question.before = &held[step];
  question.after = &held[step + 1];
  question.step = &planned.steps[step];
  question.ranks = q.ranks;
  question.topology = &q.plan->topology;
  question.place = "redistribution '" + planned.request.id + "', step " + std::to_string(step);
  return question;
}

bool has_idle_step(const Request& request, const Stops& stops) {
  const State* before = request.src_mesh == request.dst_mesh ? &request.src : nullptr;
  for (const State& stop : stops) {
    if (before != nullptr && !(stop == *before) &&
        without_single_ranks(stop) == without_single_ranks(*before))
      return true;
    before = &stop;
  }
  return false;
}

bool Way::only_exchanges() const {
  return std::all_of(planned.steps.begin(), planned.steps.end(), [](const Step& step) {
    return step.op == Op::exchange || step.group.empty();
  });
}

bool plan_for_rounds(const Plan& plan, const LevelMap& levels, PlannedRedistribution& planned) {
  if (runs_in_rounds(planned)) return false;
  if (needs_other_steps(planned)) {
    Request request = planned.request;
    request.dst = planned.dst;
    request.any_dst_order = false;  // other ways keep to the order that was chosen
    work::Budget budget{plan.options.work_budget};
    auto list = plan_optimal({&plan.meshes, &plan.topology, &request, &plan.options, true}, levels,
                             budget, {});
    if (!list) return false;
    planned.steps = std::move(list->steps);
  }
  for (Step& step : planned.steps.own()) go_in_no_chunks(step);
  price_redistribution(planned, plan.meshes, levels);
  return true;
}

bool runs_in_rounds(const PlannedRedistribution& planned) {
  const std::vector<Step>& steps = planned.steps;
  return !needs_other_steps(planned) &&
         std::all_of(steps.begin(), steps.end(), [](const Step& step) { return step.chunks == 1; });
}

bool is_in_one_phase(const PlannedRedistribution& planned) {
  const std::vector<Step>& steps = planned.steps;
  return std::all_of(steps.begin(), steps.end(), [](const Step& step) { return step.phases == 1; });
}

StepFigures collective_figures(const Plan& plan, const MeshLevels& levels,
                               const PlannedRedistribution& planned, size_t step) {
  const auto& steps = planned.steps;
  const Request& request = planned.request;
  return step_figures(step == 0 ? request.src : steps[step - 1].state, steps[step].state,
                      request.tensor.shape, *levels[mesh_of_collective(plan, planned, step)],
                      steps[step].op, product_of_sizes(steps[step].mesh_dims),
                      wire_element_bytes(planned, step));
}

void list_way(const WayQuestion& q, Way& way) {
  if (way.listed) return;
  way.listed = true;
  const PlannedRedistribution& planned = way.planned;
  const Request& request = planned.request;
  const std::vector<HeldBoxes> held = held_boxes_of(*q.plan, planned, *q.ranks);
  const int64_t width = element_bytes(request.tensor.dtype);
  const PieceCut cut = piece_cut(planned);
  std::optional<GotBoxes> got;  // in the step before, where all steps so far go in pieces
  for (size_t i = 0; i < planned.steps.size(); ++i) {
    const Step& step = planned.steps[i];
    if (i + 1 < planned.steps.size()) {
      std::vector<int64_t> bytes(q.ranks->global_ids.size(), 0);
      for (size_t slot = 0; slot < held[i + 1].ranks.size(); ++slot) {
        bytes[static_cast<size_t>(held[i + 1].ranks[slot])] =
            saturating_mul(volume(box_of_slot(held[i + 1], static_cast<int64_t>(slot))), width);
      }
      way.between.push_back(std::move(bytes));
    }
    if (is_in_no_round(step)) continue;
    WayStep moved;
    moved.index = i;
    moved.op = step.op;
    moved.element_bytes = wire_element_bytes(planned, i);
    if (step.phases == 2) {
      const StepTransfers transfers = transfers_of(q, planned, i, held);
      for (moved.phase = 1; moved.phase <= 2; ++moved.phase) {
        if (phases_go_in_pieces(planned, i)) {
          const StepTransfers phase = phase_as_step(transfers, moved.phase);
          const HeldBoxes& senders = held[moved.phase == 1 ? i : i + 1];
          moved.cuts = cuts_of_next(*got, phase, senders, held[i + 1]);
          if (moved.phase == 1) got = got_in_next(*got, phase);
        } else {
          moved.cuts = cuts_of_phase(transfers, moved.phase, held[i], held[i + 1]);
        }
        moved.level = outermost_level(q, moved.cuts);
        moved.messages = messages_of(moved.cuts, q.ranks->global_ids.size());
        way.steps.push_back(moved);
      }
      continue;
    }
    if (step.op == Op::exchange) {
      StepTransfers transfers = transfers_of(q, planned, i, held);
      const bool in_pieces = goes_in_pieces(planned, i);
      moved.cuts = in_pieces && i > 0 ? cuts_of_next(*got, transfers, held[i], held[i + 1])
                                      : cuts_of(cut, transfers, held[i], held[i + 1]);
      moved.level = outermost_level(q, moved.cuts);
      moved.messages = messages_of(moved.cuts, q.ranks->global_ids.size());
      if (in_pieces && (goes_in_pieces(planned, i + 1) || phases_go_in_pieces(planned, i + 1)))
        got = i == 0 ? got_in_first(cut, transfers) : got_in_next(*got, transfers);
    } else {
      moved.mesh_dims = step.mesh_dims;
      moved.ranks = held[i].ranks;
      moved.figures = collective_figures(*q.plan, *q.levels, planned, i);
    }
    way.steps.push_back(std::move(moved));
  }
}

void forget_list(Way& way) {
  way.listed = false;
  way.steps = {};
  way.between = {};
}

}  // namespace meshplan
