// Executes a plan on real buffers: fills the source, runs every step on a communicator and a
// device, checks every element on every rank.
#pragma once

#include <memory>
#include <utility>

#include "base/result.h"
#include "plan/plan.h"
#include "replay/communicator.h"
#include "replay/device.h"
#include "replay/report.h"
#include "transfer/rank_table.h"

namespace meshplan {

// One redistribution, prepared to run any number of times. Its buffers are in the arena of the
// device, so at most one exists per device unless the caller resets the arena itself.
class RedistributionRun {
 public:
  struct Question {
    const Plan* plan = nullptr;
    const PlannedRedistribution* redistribution = nullptr;
    const ReplayOptions* options = nullptr;
    const RankTable* ranks = nullptr;
    Communicator* communicator = nullptr;
    Device* device = nullptr;
    const InjectedFault* fault = nullptr;  // to inject; null: none
    int64_t tensor = 0;                    // which of its like tensors: each has data of its own
  };
  using Report = RedistributionReport;
  struct Inside;  // replay/run_inside.h
  ~RedistributionRun();
  RedistributionRun(RedistributionRun&&) noexcept;

  // Prepares steps, buffers, communicators and source data. Collective.
  [[nodiscard]] static Result<RedistributionRun> prepare(const Question& question);
  // Checks that all processes are ready and have the same digest of plan and steps; otherwise every
  // process gets the same error. `prepared` is the result of `prepare` on this process. Then
  // creates communicators and fills the source. Collective.
  [[nodiscard]] static Status agree(Result<RedistributionRun>& prepared, const Question& question);

  [[nodiscard]] size_t steps() const;
  // The redistribution, and a step of it, in messages.
  [[nodiscard]] std::string place() const;
  [[nodiscard]] std::string place(size_t step) const;
  // Runs one step without poison and checks, for measuring.
  [[nodiscard]] Status run_step(size_t step);
  // Starts all steps as one recorded graph (ReplayOptions::graph); the first call records it.
  [[nodiscard]] Status run_recorded();
  // The same of one step, to its end.
  [[nodiscard]] Status run_recorded_step(size_t step);
  // Runs all steps with poison, guards and a final check. If an element is wrong on any rank, runs
  // again with a check after every step to find the first wrong step.
  [[nodiscard]] Result<RedistributionReport> run_and_check();
  // The first call of the step without packing, null for local steps: for measuring the overhead of
  // replay.
  [[nodiscard]] const Call* bare_call(size_t step) const;
  [[nodiscard]] const std::vector<int64_t>& replay_shape() const;

 private:
  explicit RedistributionRun(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

// What runs at a time: a bundle, or a redistribution by itself.
struct ReplayUnit {
  const PlannedRedistribution* redistribution = nullptr;  // null: a bundle
  const PlannedBundle* bundle = nullptr;
  [[nodiscard]] const std::string& id() const {
    return bundle != nullptr ? bundle->request.id : redistribution->request.id;
  }
};
// All of a plan in its order, a bundle at the place of its first member; or those that `only_ids`
// name, members then by themselves.
[[nodiscard]] Result<std::vector<ReplayUnit>> replay_units(const Plan& plan,
                                                           const ReplayOptions& options);

// The ranks that a plan is replayed on.
[[nodiscard]] Result<RankTable> ranks_for(const Plan& plan, const Communicator& communicator);

// A RedistributionRun or BundleRun and what its check found.
template <class Run>
struct CheckedRun {
  Run run;
  typename Run::Report report;
};

// Prepares the run of a question, agrees on it with all processes and checks it once. An error on
// this process ends the others, too. Collective.
template <class Run>
[[nodiscard]] Result<CheckedRun<Run>> checked_run(const typename Run::Question& question) {
  auto run = Run::prepare(question);
  if (auto done = Run::agree(run, question); !done) return done.error();
  auto report = or_abort(*question.communicator, run->run_and_check());
  if (!report) return report.error();
  return CheckedRun<Run>{std::move(*run), std::move(*report)};
}

// Replays the units selected by `options`; of redistributions that repeat one another
// (plan/firsts.h) the first for all, as they would run the same steps on the same data. One with a
// fault runs by itself. The result is ok even if data was wrong; see
// the report. Errors: a step that cannot be executed (wrong_data, naming redistribution, step, rank
// and index), or missing requirements (environment).
[[nodiscard]] Result<ReplayReport> replay(const Plan& plan, const ReplayOptions& options,
                                          Communicator& communicator, Device& device);

}  // namespace meshplan
