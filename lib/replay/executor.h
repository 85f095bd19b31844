// Walks a plan on real buffers: fills the source, runs every step on a communicator and a device, checks every element of every rank.
#pragma once

#include <memory>

#include "base/result.h"
#include "plan/plan.h"
#include "replay/communicator.h"
#include "replay/device.h"
#include "replay/program.h"
#include "replay/report.h"

namespace meshplan {

// One redistribution, ready to run any number of times. Buffers belong to the device's arena: at most one is alive per device, unless the
// caller resets the arena itself.
class RedistributionRun {
 public:
  struct Question {
    const Plan* plan = nullptr;
    const PlannedRedistribution* redistribution = nullptr;
    const ReplayOptions* options = nullptr;
    const RankTable* ranks = nullptr;
    Communicator* communicator = nullptr;
    Device* device = nullptr;
    const InjectedFault* fault = nullptr;  // to be put in; null: none
  };
  ~RedistributionRun();
  RedistributionRun(RedistributionRun&&) noexcept;

  // Flows, buffers, communicators, source data. Collective: every process calls it.
  [[nodiscard]] static Result<RedistributionRun> prepare(const Question& question);
  // The digest check of REPLAY.md: every process is ready and would do the same; otherwise every process gets the same error. `prepared` is
  // this process's result of `prepare`. Then communicators are made and the source is filled.
  [[nodiscard]] static Status agree(Result<RedistributionRun>& prepared, const Question& question);

  [[nodiscard]] size_t steps() const;
  // Runs one step; nothing is poisoned or checked. For measuring.
  [[nodiscard]] Status run_step(size_t step);
  // Starts all steps as one recorded graph (ReplayOptions::graph), which the first call of it records.
  [[nodiscard]] Status run_recorded();
  // Runs all steps once with poison, guards and the check at the end, and, if something is wrong anywhere, once more with a check after
  // every step, to name the first wrong one.
  [[nodiscard]] Result<RedistributionReport> run_and_check();
  // The step's first call by itself, without packing around it; null where nothing communicates. For measuring what replaying adds.
  [[nodiscard]] const Call* bare_call(size_t step) const;
  [[nodiscard]] const std::vector<int64_t>& replay_shape() const;

 private:
  struct Inside;
  explicit RedistributionRun(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

// Replays the redistributions of the plan that `options` selects. The result is ok also where data was wrong: ask the report. Errors: a
// step that cannot be executed (wrong_data, naming redistribution, step, rank and index), an environment that lacks something.
[[nodiscard]] Result<ReplayReport> replay(const Plan& plan, const ReplayOptions& options, Communicator& communicator, Device& device);

}  // namespace meshplan
