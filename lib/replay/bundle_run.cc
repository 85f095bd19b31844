#include "replay/bundle_run.h"

#include <algorithm>

#include "replay/agreement.h"
#include "replay/bundle_inside.h"
#include "replay/strike.h"

namespace meshplan {

BundleRun::BundleRun(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
BundleRun::~BundleRun() = default;
BundleRun::BundleRun(BundleRun&&) noexcept = default;
const std::vector<std::vector<size_t>>& BundleRun::waves() const { return inside_->wave_rounds; }
std::string BundleRun::place(size_t wave) const { return inside_->place_of_wave(wave); }
Status BundleRun::run_wave(size_t wave) { return inside_->run_wave(wave); }
const std::vector<BundleRun::Tensor>& BundleRun::tensors() const { return inside_->chosen; }
const ReplayOptions& BundleRun::options() const { return inside_->options; }
bool BundleRun::is_smaller() const { return inside_->smaller; }
const std::vector<PairBytes>& BundleRun::pairs(size_t round) const {
  return inside_->rounds[round].pairs;
}

Status BundleRun::Inside::run_wave(size_t wave) const {
  for (const WavePhase& phase : waves[wave].phases) {
    if (auto done = do_local_work(*q.device, locals, phase.work, waves[wave].bytes); !done)
      return done;
    if (phase.calls.empty()) continue;
    if (auto done = q.communicator->run_together(phase.calls, deadline()); !done) return done;
  }
  return Done{};
}

Status BundleRun::Inside::poison(const std::vector<WaveBuffer>& buffers) const {
  for (const WaveBuffer& buffer : buffers) {
    if (auto done = q.device->poison(buffer.rank, buffer.data, buffer.bytes); !done) return done;
  }
  return Done{};
}

// Injected faults of the process itself, before the wave of their round.
void BundleRun::Inside::act_as_told(size_t wave) const {
  const std::vector<size_t>& list = wave_rounds[wave];
  if (q.fault == nullptr || std::none_of(list.begin(), list.end(), [&](size_t round) {
        return static_cast<int64_t>(round) == q.fault->step;
      }))
    return;
  if (is_ours(*q.fault, *q.ranks, *q.communicator)) strike_process(q.fault->kind);
}

// All waves with poison. `check_each`: until the first wave after which something is wrong, which
// goes into `report`.
Status BundleRun::Inside::run_all(bool check_each, BundleReport& report) const {
  for (const BundleTensor& t : tensors) {
    if (t.run->r->steps.empty()) continue;
    if (auto done = t.run->poison(t.run->r->steps.size()); !done) return done;
  }
  for (size_t wave = 0; wave < waves.size(); ++wave) {
    act_as_told(wave);
    if (auto done = q.communicator->barrier_with_deadline(place_of_wave(wave), deadline()); !done)
      return done;
    if (auto done = poison(waves[wave].begins); !done) return done;
    if (auto done = run_wave(wave); !done) return done;
    if (auto done = inject(wave); !done) return done;
    if (!check_each) {
      if (auto done = check_guards(wave, report); !done) return done;
      continue;
    }
    auto wrong = check_wave(wave, report);
    if (!wrong) return wrong.error();
    if (*wrong) return Done{};
  }
  for (const BundleTensor& t : tensors) {
    if (!t.run->completing) continue;
    const size_t last = t.run->r->steps.size();
    if (auto done = t.run->poison(last + 1); !done) return done;
  }
  for (const PreparedStep& step : completing) {
    if (auto done = tensors.front().run->run_prepared(step); !done) return done;
  }
  return Done{};
}

Result<BundleReport> BundleRun::run_and_check() {
  Inside& in = *inside_;
  BundleReport report = in.empty_report();
  if (auto done = in.run_all(false, report); !done) return done.error();
  if (auto done = in.check_ends(report); !done) return done.error();
  auto wrong = in.tensors.front().run->everyones_sum(report.wrong);
  if (!wrong) return wrong.error();
  if (*wrong > 0) {
    BundleReport first = in.empty_report();
    if (auto done = in.run_all(true, first); !done) return done.error();
    auto found = in.tensors.front().run->everyones_sum(std::ssize(first.differences));
    if (!found) return found.error();
    // Differences that only the end shows, such as of what no round brings, stay.
    if (*found > 0) report.differences = std::move(first.differences);
  }
  in.measure_limits(report);
  if (auto done = in.gather(report); !done) return done.error();
  return report;
}

}  // namespace meshplan
