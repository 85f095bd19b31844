// The implementation of RedistributionRun. Files: run_prepare.cc (prepared steps, buffers,
// agreement of processes), run_steps.cc (steps, injected faults, verdict), run_check.cc (comparison
// of every element).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/executor.h"
#include "replay/program.h"
#include "transfer/flow.h"
#include "transfer/stand.h"

namespace meshplan {

// "redistribution 'x'", "redistribution 'x', step 2": one line, since signal handlers and other
// processes print it unchanged
[[nodiscard]] std::string place_of(const PlannedRedistribution& r);
[[nodiscard]] std::string place_of(const PlannedRedistribution& r, size_t step);

struct RedistributionRun::Inside {
  Question q;
  const PlannedRedistribution* r = nullptr;
  DType dtype = DType::float32;
  int64_t size = 4;  // of an element
  std::vector<int64_t> shape;
  bool shrunk = false;
  std::vector<Stand> stands;  // the source, then after each step, then after the completing step
  std::vector<StepFlow> flows;
  std::vector<PreparedStep> programs;
  std::optional<Step> completing;
  std::vector<std::byte*> source;  // by slot of the source
  std::vector<int32_t> locals;
  std::vector<int32_t> local_number;
  std::shared_ptr<const DataTable> table;
  std::string digest_text;
  uint64_t salt = 0;  // from the id
  bool recorded = false;
  std::vector<std::vector<size_t>> local_slots;  // by state: the local slots

  [[nodiscard]] Deadline deadline() const {
    return std::chrono::steady_clock::now() + q.options->step_deadline;
  }
  [[nodiscard]] const std::vector<std::byte*>& held(size_t stand) const {
    return stand == 0 ? source : programs[stand - 1].after;
  }
  [[nodiscard]] int64_t global_id(int32_t rank) const {
    return q.ranks->global_ids[static_cast<size_t>(rank)];
  }
  [[nodiscard]] int64_t copy_of(const Stand& stand, size_t slot) const {
    return static_cast<int64_t>(slot) / stand.size;
  }
  // Depends on the redistribution and the copy of the mesh, not on the machine.
  [[nodiscard]] int64_t shift_of(const Stand& stand, size_t slot) const {
    return table->shift_for(mix(salt, static_cast<uint64_t>(copy_of(stand, slot))));
  }

  const Mesh& mesh_named(const std::string& name, size_t fallback) const {
    if (!name.empty()) {
      if (auto at = find_mesh(q.plan->meshes, name)) return q.plan->meshes.meshes[*at];
    }
    return q.plan->meshes.meshes[fallback];
  }

  Status make_stands();
  Status make_programs();
  Status fill_source();
  Status check_stand(size_t stand, int64_t step, RedistributionReport& report) const;
  Status check_middle(size_t stand, RedistributionReport& report, bool& known) const;
  Status check_guards(size_t stand, RedistributionReport& report) const;
  Status poison(size_t stand) const;
  Status inject(size_t stand) const;
  Status run_program(const PreparedStep& program) const;
  Status run_all() const;
  Status run_recorded();
  Status check_recorded(RedistributionReport& report);
  Status find_first_wrong(RedistributionReport& report) const;
  Result<int64_t> everyones_sum(int64_t value) const;
  void act_as_told(size_t step) const;
  [[nodiscard]] int64_t contribution_of(const Stand& stand, int64_t index) const;
  void add_difference(RedistributionReport& report, int64_t rank, int64_t step, const Box& box,
                      int64_t at, const std::byte* expected, const std::byte* found) const;
};

}  // namespace meshplan
