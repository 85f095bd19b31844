// The like tensors of a bundle, and what each way to move one of them moves.
//
//     members w1 (3 tensors) and w2 (1) with one question     one kind of 4 tensors, ways:
//       at once       step 0: 8 B from rank 0 to each of ranks 2 .. 5
//       by a stop     step 0: 2 B from rank 0 to each; step 1: 2 B from each to each other
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cost/round_time.h"
#include "cost/step_figures.h"
#include "plan/plan.h"
#include "search/exchange_plans.h"
#include "transfer/level_map.h"
#include "transfer/step_transfers.h"

namespace meshplan {

// A step of one tensor.
struct WayStep {
  size_t index = 0;  // into the steps of the plan
  int phase = 0;     // 1 or 2 of an exchange in two phases, which is two of these
  Op op = Op::exchange;
  int64_t element_bytes = 1;       // on the way
  int level = 0;                   // the outermost one over which an exchange sends
  std::vector<StepCut> cuts;       // of an exchange
  int64_t messages = 0;            // of a rank in an exchange that goes whole, at most
  StepFigures figures;             // of a collective
  std::vector<SubAxis> mesh_dims;  // of a collective, as its ranks:
  std::vector<int32_t> ranks;      // replay ranks
};

// One plan of the kind's question. What its steps move is listed on demand.
struct Way {
  PlannedRedistribution planned;
  bool listed = false;
  std::vector<WayStep> steps;  // those that communicate
  // Of every replay rank: bytes of the box after each step but the last, by step.
  std::vector<std::vector<int64_t>> between;
  [[nodiscard]] bool only_exchanges() const;
};

struct Kind {
  std::vector<size_t> members;  // indices into the plan's redistributions
  std::vector<int64_t> firsts;  // of each member, its first tensor among those of the kind
  int64_t tensors = 0;
  std::vector<Way> ways;
  // Whether the last of several ways is the plan for itself, in two phases.
  bool own_in_two_phases = false;
  // Index into `ways`, by family of stops (search/exchange_plans.h) and whether pieces go whole.
  std::map<std::pair<int, bool>, size_t> families;
  // Those of the ways [gathering, gathers_end) gather behind one exchange, from `rails` on over the
  // outer links alone, with another exchange behind that.
  size_t gathering = 0;
  size_t rails = 0;
  size_t gathers_end = 0;
};

// Of every mesh of the bundle, by index.
using MeshLevels = std::vector<std::unique_ptr<LevelMap>>;

// Whether a step to one of the stops says another state of the same boxes, which moves nothing: no
// exchange does that.
[[nodiscard]] bool has_idle_step(const Request& request, const Stops& stops);

struct WayQuestion {
  const Plan* plan = nullptr;
  const RankTable* ranks = nullptr;
  const MeshLevels* levels = nullptr;
};
// `held`: before the first step and after each (transfer/listed_transfers.h).
[[nodiscard]] TransferQuestion transfer_question(const WayQuestion& question,
                                                 const PlannedRedistribution& planned, size_t step,
                                                 const std::vector<HeldBoxes>& held);
// Makes of it what rounds run: planned anew where all ranks of units fetch something, in laps or
// shifts, or with a far share; two phases in no chunks, as pieces take their place. Whether it did.
//
//     exchange, phases 2, chunks 1024     exchange, phases 2: rounds of pieces 0 of 16, 1 of 16, ..
bool plan_for_rounds(const Plan& plan, const LevelMap& levels, PlannedRedistribution& planned);
// Whether rounds can run it as it is.
[[nodiscard]] bool runs_in_rounds(const PlannedRedistribution& planned);
// Whether no step goes in two phases.
[[nodiscard]] bool is_in_one_phase(const PlannedRedistribution& planned);
// Of one tensor.
[[nodiscard]] StepFigures collective_figures(const Plan& plan, const MeshLevels& levels,
                                             const PlannedRedistribution& planned, size_t step);
// Fills `steps` and `between`.
void list_way(const WayQuestion& question, Way& way);
// Gives back what they take, which may be gigabytes.
void forget_list(Way& way);

}  // namespace meshplan
