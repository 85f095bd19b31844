// The implementation of RedistributionRun. Files: run_prepare.cc (prepared steps, buffers,
// agreement of processes), run_steps.cc (steps, injected faults, verdict), run_check.cc (comparison
// of every element).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/executor.h"
#include "replay/prepared_step.h"
#include "replay/shrink.h"
#include "transfer/held_boxes.h"
#include "transfer/step_transfers.h"

namespace meshplan {

// "redistribution 'x'", "redistribution 'x', step 2": one line, since signal handlers and other
// processes print it unchanged
[[nodiscard]] std::string place_of(const PlannedRedistribution& r);
[[nodiscard]] std::string place_of(const PlannedRedistribution& r, size_t step);

// Local work by local rank number, on as many threads as the device has; ranks without any are
// skipped. `bytes`: about as many are moved.
[[nodiscard]] Status do_local_work(Device& device, const std::vector<int32_t>& locals,
                                   const std::vector<std::vector<LocalOp>>& work, int64_t bytes);

struct RedistributionRun::Inside {
  Question q;
  const PlannedRedistribution* r = nullptr;
  DType dtype = DType::float32;
  int64_t size = 4;  // of an element
  std::vector<int64_t> shape;
  bool shrunk = false;
  std::vector<HeldBoxes>
      held_boxes;  // the source, then after each step, then after the completing step
  std::vector<StepTransfers> transfers;
  std::vector<PreparedStep> prepared;
  std::optional<Step> completing;
  std::vector<std::byte*> source;  // by slot of the source
  std::vector<int32_t> locals;
  std::vector<int32_t> local_number;
  std::shared_ptr<const DataTable> table;
  std::string digest_text;
  uint64_t salt = 0;                // from the id
  std::optional<int64_t> recorded;  // by Device::record: all steps
  std::vector<std::optional<int64_t>> recorded_steps;
  std::vector<std::vector<size_t>> local_slots;  // by state: the local slots

  [[nodiscard]] Deadline deadline() const {
    return std::chrono::steady_clock::now() + q.options->step_deadline;
  }
  [[nodiscard]] const std::vector<std::byte*>& held(size_t state) const {
    return state == 0 ? source : prepared[state - 1].after;
  }
  [[nodiscard]] int64_t global_id(int32_t rank) const { return q.ranks->global_ids[rank]; }
  [[nodiscard]] int64_t copy_of(const HeldBoxes& at, size_t slot) const {
    return static_cast<int64_t>(slot) / at.size;
  }
  // Depends on the redistribution and the copy of the mesh, not on the machine.
  [[nodiscard]] int64_t shift_of(const HeldBoxes& at, size_t slot) const {
    return table->shift_for(mix(salt, static_cast<uint64_t>(copy_of(at, slot))));
  }

  const Mesh& mesh_named(const std::string& name, size_t fallback) const {
    if (!name.empty()) {
      if (auto at = find_mesh(q.plan->meshes, name)) return q.plan->meshes.meshes[*at];
    }
    return q.plan->meshes.meshes[fallback];
  }

  // All that needs no steps: data, sizes, local ranks.
  [[nodiscard]] static std::unique_ptr<Inside> begin(const Question& question);
  Status make_all_held_boxes();
  Status choose_shape(const std::vector<StateOnMesh>& states,
                      const std::vector<const Mesh*>& meshes, double factor);
  // Whether the exchanges in shifts have as many stages as their chunks are planned for.
  Status stages_fit() const;
  Status prepare_steps();
  Status fill_source();
  Status check_state(size_t state, int64_t step, RedistributionReport& report) const;
  Status check_middle(size_t state, RedistributionReport& report, bool& known) const;
  Status check_guards(size_t state, RedistributionReport& report) const;
  Status poison(size_t state) const;
  Status inject(size_t state) const;
  Status run_prepared(const PreparedStep& step) const;
  Status run_all() const;
  // Starts these steps as the recording of this number; makes it first where there is none.
  Status run_recorded(std::span<const PreparedStep> steps, std::optional<int64_t>& number) const;
  Status check_recorded(RedistributionReport& report);
  Status find_first_wrong(RedistributionReport& report) const;
  Result<int64_t> everyones_sum(int64_t value) const;
  void act_as_told(size_t step) const;
  void add_difference(RedistributionReport& report, int64_t rank, int64_t step, const Box& box,
                      int64_t at, const std::byte* expected, const std::byte* found) const;
};

}  // namespace meshplan
