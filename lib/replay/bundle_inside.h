// The implementation of BundleRun. Files: bundle_tensors.cc (which tensors, their buffers and
// lifetimes), bundle_prepare.cc (waves, agreement), round_preparer.cc (one round), bundle_run.cc
// (waves, faults, verdict), bundle_check.cc (where it is wrong).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/bundle_run.h"
#include "replay/run_inside.h"
#include "replay/staging_pool.h"
#include "transfer/round_transfers.h"

namespace meshplan {

// Local work of every local rank, then calls of which none needs another.
struct WavePhase {
  std::vector<std::vector<LocalOp>> work;  // by local rank number
  std::vector<Call> calls;
};

// A buffer of a wave.
struct WaveBuffer {
  int32_t rank = 0;
  std::byte* data = nullptr;
  int64_t bytes = 0;
  size_t round = 0;     // of a message
  int64_t tensor = -1;  // of a box between two steps; -1: a message
  int64_t step = -1;    // that writes it
};

// A box between two steps, or after the last, that is whole after a wave.
struct WholeState {
  size_t tensor = 0;
  size_t state = 0;
};

// The groups of the calls of a collective.
struct WaveGroups {
  int64_t stream = 0;
  std::vector<std::unique_ptr<const std::vector<int32_t>>> owned;
};

struct PreparedWave {
  std::vector<WavePhase> phases;
  int64_t bytes = 0;               // an estimate of the local work
  std::vector<WaveBuffer> begins;  // to poison before the wave
  std::vector<WaveBuffer> ends;    // their guards are checked after it
  std::vector<WholeState> whole;
  std::vector<WaveGroups> groups;
};

// What a round of this process does.
struct RoundFacts {
  int64_t stream = 0;                   // in its wave: Call::stream
  std::map<int32_t, int64_t> messages;  // by local rank
  std::vector<PairBytes> pairs;         // of all ranks, by sender, then receiver
};

// A tensor that is replayed: its boxes and data are those of a redistribution by itself.
struct BundleTensor {
  BundleRun::Tensor which;
  std::unique_ptr<RedistributionRun::Inside> run;
  // By step: the first and the last wave that runs it; of a local step the one in which it runs.
  std::vector<size_t> first_wave;
  std::vector<size_t> last_wave;
  bool only_local = false;  // all its steps are local: they run in one go (local_chain.h)
};

struct BundleRun::Inside {
  explicit Inside(const Question& question);
  Question q;
  const PlannedBundle* b = nullptr;
  ReplayOptions options;  // those of the question, with the bundle's limits of size
  std::vector<BundleTensor> tensors;
  std::vector<Tensor> chosen;
  std::map<size_t, std::vector<size_t>> of_member;  // member -> its tensors, ascending by number
  std::unique_ptr<MemberTransfers> transfers;
  std::vector<std::vector<size_t>> wave_rounds;
  std::vector<PreparedWave> waves;
  std::vector<RoundFacts> rounds;
  std::vector<PreparedStep> completing;  // of targets with pending reductions: for the check
  StagingPool pool;
  std::vector<int32_t> locals;
  std::vector<int32_t> local_number;
  std::string digest_text;
  bool smaller = false;

  [[nodiscard]] std::string place() const;
  [[nodiscard]] std::string place_of_round(size_t round) const;
  [[nodiscard]] std::string place_of_wave(size_t wave) const;
  [[nodiscard]] Deadline deadline() const {
    return std::chrono::steady_clock::now() + q.options->step_deadline;
  }
  [[nodiscard]] int64_t global_id(int32_t rank) const { return q.ranks->global_ids[rank]; }
  // Tensors that a part runs.
  [[nodiscard]] std::vector<size_t> tensors_of(const RoundPart& part) const;

  Status make_tensors();
  [[nodiscard]] double bytes_in_all() const;
  [[nodiscard]] double bytes_of_tensor(const PlannedRedistribution& r) const;
  // `fewer`: some that stand for all that are alike.
  void choose_tensors(bool fewer);
  Status find_waves_of_steps();
  Status allocate_ends();

  Status prepare_waves();
  Status begin_boxes(size_t wave);
  void end_boxes(size_t wave);
  Status add_local_steps(size_t wave, bool behind);
  void finish_wave(size_t wave);
  Status add_local_step(size_t tensor, size_t step, WavePhase& phase);
  Status add_local_chain(size_t tensor, WavePhase& phase);
  Status prepare_completing();
  Status create_communicators() const;

  Status run_wave(size_t wave) const;
  Status run_all(bool check_each, BundleReport& report) const;
  Status poison(const std::vector<WaveBuffer>& buffers) const;
  Status check_guards(size_t wave, BundleReport& report) const;
  void act_as_told(size_t wave) const;
  Status inject(size_t wave) const;
  Status check_ends(BundleReport& report) const;
  Result<bool> check_wave(size_t wave, BundleReport& report) const;
  void add(const RedistributionReport& found, size_t tensor, BundleReport& report) const;
  [[nodiscard]] int64_t round_of(const Difference& difference, size_t tensor) const;
  Status gather(BundleReport& report) const;
  void measure_limits(BundleReport& report) const;
  [[nodiscard]] BundleReport empty_report() const;
};

}  // namespace meshplan
