// Runs a bundle by its rounds (plan/bundle.h), wave after wave: all rounds of a wave are in flight
// together, an exchange round sends one packed message to each peer.
//
//     wave 0   pack rounds 0 and 1, all their calls at once, unpack     its staging is given back
//     wave 1   ...
//
// Like tensors have data of their own. The staging of a wave is real: it is taken from a pool that
// counts it, poisoned before the wave and given back after it, as boxes between two steps are.
#pragma once

#include <memory>

#include "base/result.h"
#include "plan/plan.h"
#include "replay/communicator.h"
#include "replay/device.h"
#include "replay/report.h"
#include "transfer/rank_table.h"

namespace meshplan {

// What an exchange round sends from one rank to another, in bytes.
struct PairBytes {
  int32_t from = 0;  // replay ranks, which differ
  int32_t to = 0;
  int64_t bytes = 0;
};

class BundleRun {
 public:
  struct Question {
    const Plan* plan = nullptr;
    const PlannedBundle* bundle = nullptr;
    const ReplayOptions* options = nullptr;
    const RankTable* ranks = nullptr;
    Communicator* communicator = nullptr;
    Device* device = nullptr;
    const InjectedFault* fault = nullptr;  // its step is a round; null: none
  };
  // A tensor that is replayed.
  struct Tensor {
    size_t member = 0;   // index into the plan's redistributions
    int64_t number = 0;  // of its like tensors
  };
  using Report = BundleReport;
  struct Inside;  // replay/bundle_inside.h
  ~BundleRun();
  BundleRun(BundleRun&&) noexcept;

  // Prepares tensors, rounds and staging. Errors: a step that no round runs or cannot run
  // (wrong_data, naming bundle and round), missing memory (environment).
  [[nodiscard]] static Result<BundleRun> prepare(const Question& question);
  // As RedistributionRun::agree. Collective.
  [[nodiscard]] static Status agree(Result<BundleRun>& prepared, const Question& question);

  // The rounds of each wave. A wave of none behind them runs tensors that only take local steps.
  [[nodiscard]] const std::vector<std::vector<size_t>>& waves() const;
  // A wave in messages.
  [[nodiscard]] std::string place(size_t wave) const;
  // Runs one wave without poison and checks, for measuring.
  [[nodiscard]] Status run_wave(size_t wave);
  // Runs all waves with poison, guards and a final check of every tensor. If an element is wrong on
  // any rank, runs again with a check after every wave to find the round.
  [[nodiscard]] Result<BundleReport> run_and_check();

  [[nodiscard]] const std::vector<Tensor>& tensors() const;
  // The question's, with the limits of size that hold for its tensors.
  [[nodiscard]] const ReplayOptions& options() const;
  // Whether any shape or number of like tensors is not the plan's.
  [[nodiscard]] bool is_smaller() const;
  // What the exchange round sends, of the tensors and shapes that are replayed.
  [[nodiscard]] const std::vector<PairBytes>& pairs(size_t round) const;

 private:
  explicit BundleRun(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace meshplan
